// The network between simulated hosts: streams over links, as TCP gives them.
//
// Why this exists: bytes take time, arrive in order within a stream and in any order across streams, and stop
// arriving when a machine or a link dies; and the other side learns of that late, or never.
//
// Names: host number i (from 0, in order of `world::add_host`) has the address 10.0.x.y with x.y = i + 1 as 16 bits,
// so the first host is "10.0.0.1". 127.x.y.z is the host that uses it. A scenario names a peer by that text and the
// port that its listener got: "10.0.0.1:5000".
//
// A host is a process. Each is on a machine of its own unless it was placed beside another (`place`): hosts of one
// machine reach each other over its loopback device and, where a driver asks for it, through its memory. What goes
// through memory knows no network: no link, no partition, and nobody is told of a death.
//
// Faults it makes:
//   crash of a host      its streams break; the peers learn it 17 to 45 ms later, after what was on its way arrived
//   pause of a host      nothing here: its kernel goes on acknowledging, bytes queue up behind fibers that do not run
//   partition            both ways or one way; nothing arrives until it is healed; what waited then arrives. After
//                        16 s without a way the streams over it break at both ends (keep-alive)
//   points fabric.delay, fabric.partition, fabric.reset
// Loss is a delay (retransmission); nothing is altered or doubled, because TCP hides that from everybody above.
//
// Ownership   One fabric for each world. A stream is shared by its two ends and by what is on its way; an end detaches
//             itself before it is destroyed.
// Units       Virtual nanoseconds; bytes per microsecond.
// Threading   One OS thread, kernel scope. Ends are called from world events.
// Failure     `connect` to nobody breaks the stream with `refused`, later.
#pragma once

#include <sim/faults/fault_plan.hpp>
#include <sim/kernel/world.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sim {

struct link_settings {
  std::int64_t latency_ns = 20'000;
  std::int64_t jitter_ns = 10'000;             // uniform, above the latency
  std::int64_t bytes_per_us = 1'000;           // 1 GB/s
  std::int64_t loopback_latency_ns = 2'000;    // a host to itself, without jitter
  std::int64_t detection_low_ns = 17'000'000;  // a crash is noticed after low … high
  std::int64_t detection_high_ns = 45'000'000;
  std::int64_t retransmission_ns = 200'000'000;
  std::int64_t keepalive_ns = 16'000'000'000;  // a partition breaks streams after this
  std::int64_t shared_latency_ns = 300;        // through the memory of a machine
  std::int64_t shared_bytes_per_us = 5'000;
};

/// What travels. The derived class is the sender's and receiver's business.
class packet {
 public:
  virtual ~packet() = default;
};

enum class break_reason : std::uint8_t {
  refused,    // nobody listens there
  reset,      // the other end closed or crashed
  timed_out,  // no way to the other end
};

/// One end of a stream. Kernel scope; may not destroy the stream's other end.
class stream_end {
 public:
  virtual void arrived(std::unique_ptr<packet> what) = 0;
  /// At most once; nothing arrives after it.
  virtual void broken(break_reason why) = 0;

 protected:
  ~stream_end() = default;
};

class stream;

/// Somebody who listens on a port.
class acceptor {
 public:
  /// A client's stream with its first packet. The acceptor attaches an end to `where`, now or later, or lets it go.
  virtual void connected(std::shared_ptr<stream> where, std::unique_ptr<packet> first) = 0;

 protected:
  ~acceptor() = default;
};

enum class side : std::uint8_t { client = 0, server = 1 };

class stream {
 public:
  std::uint64_t number = 0;  // from 1 in a world

 private:
  friend class fabric;
  host* hosts_[2] = {nullptr, nullptr};
  stream_end* ends_[2] = {nullptr, nullptr};
  bool shared_ = false;              // through the memory of one machine
  bool closed_[2] = {false, false};  // by that side, or by its host's crash
  bool broken_[2] = {false, false};  // that side was told, or will be when an end is attached
  break_reason why_[2] = {break_reason::reset, break_reason::reset};
  std::int64_t last_arrival_[2] = {0, 0};  // at that side: a stream keeps its order
};

class fabric {
 public:
  static fabric& of(world& w);
  explicit fabric(world& w);
  fabric(const fabric&) = delete;
  fabric& operator=(const fabric&) = delete;

  link_settings settings;

  static std::uint32_t address_of(const host& h) noexcept;  // host byte order
  /// Number of the machine that `h` runs on; by default one of its own.
  std::uint32_t machine_of(const host& h) const noexcept;
  /// From here on `h` runs on `machine`, of whom `machine_of` tells the number. Streams that exist keep their way.
  void place(const host& h, std::uint32_t machine);
  /// The host that `address` means when `from` uses it, or null.
  host* host_at(host& from, std::uint32_t address) noexcept;
  /// "10.0.0.1:5000".
  static std::string text_of(std::uint32_t address, std::uint16_t port);

  /// `port` 0: the next free one from 5000. The error is an errno value.
  std::expected<std::uint16_t, int> listen(host& h, std::uint16_t port, acceptor& who);
  void stop_listening(host& h, std::uint16_t port);

  /// Opens a stream and sends `first` (of `bytes` on the wire) with it.
  std::shared_ptr<stream> connect(host& from, stream_end& end, std::uint32_t address, std::uint16_t port,
                                  std::unique_ptr<packet> first, std::size_t bytes);
  /// As `connect`, through memory, to a host of the same machine. Without a listener nothing happens, ever.
  std::shared_ptr<stream> connect_shared(host& from, stream_end& end, host& to, std::uint16_t port,
                                         std::unique_ptr<packet> first, std::size_t bytes);
  /// Attaches an end at a side that has none yet. If the stream broke meanwhile the end learns it in a later event.
  void attach(const std::shared_ptr<stream>& s, side where, stream_end& end);
  /// Sends from `from`'s side. Goes nowhere if that side is closed or broken.
  void send(const std::shared_ptr<stream>& s, side from, std::unique_ptr<packet> what, std::size_t bytes);
  /// This side wants nothing more and hears nothing more. The other side learns it in order, after what is on its
  /// way, as `reset`; not at all if `quietly` (both have agreed by packets).
  void close(const std::shared_ptr<stream>& s, side from, bool quietly = false);

  /// Whether that side was closed, or its host crashed: what the other sends finds nobody.
  static bool closed(const stream& s, side which) noexcept { return s.closed_[static_cast<std::size_t>(which)]; }

  static bool through_memory(const stream& s) noexcept { return s.shared_; }

  /// Whether anything that `from` sends now arrives at `to`.
  bool has_way(const host& from, const host& to) const noexcept;
  /// Cuts the link from `a` to `b`, and back unless `one_way`.
  void partition(host& a, host& b, bool one_way = false);
  /// Both ways. What waited arrives, in order.
  void heal(host& a, host& b);
  /// From here on what goes from `from` to `to` takes `extra_ns` longer.
  void slow(host& from, host& to, std::int64_t extra_ns);

 private:
  enum class parcel_kind : std::uint8_t { connect, data, broke };
  struct parcel {
    parcel_kind kind;
    std::shared_ptr<stream> where;
    side to;
    std::unique_ptr<packet> what;
    std::size_t bytes = 0;
    std::uint16_t port = 0;
    break_reason why = break_reason::reset;
  };
  struct link {
    std::int64_t busy_until = 0;
    std::int64_t extra_ns = 0;
    bool cut = false;
    std::uint32_t cuts = 0;  // a late time-out knows by it whether this is still the same cut
    std::vector<parcel> waiting;
  };
  struct host_record {
    std::uint32_t watched_life = 0;  // a crash ends its hooks
    std::map<std::uint16_t, acceptor*> listening;
    std::uint16_t next_port = 5000;
    std::vector<std::weak_ptr<stream>> streams;  // with an end on this host, in order of creation
  };

  host_record& record(host& h);
  void remember(host& h, const std::shared_ptr<stream>& s);
  link& between(const host& from, const host& to) { return links_[{from.index(), to.index()}]; }
  void transmit(parcel p, std::int64_t extra_ns = 0);
  void schedule(parcel p, std::int64_t time_ns);
  void arrive(parcel p);
  void break_at(const std::shared_ptr<stream>& s, side where, break_reason why);
  void cut(host& from, host& to);
  void mend(host& from, host& to);
  void host_crashed(host& h);
  /// Faults at the point where a packet leaves: extra time; may cut or break.
  std::int64_t disturb(const std::shared_ptr<stream>& s, side from);

  world& world_;
  random_stream& chance_;
  fault_plan& faults_;
  std::map<std::uint16_t, host_record> hosts_;                     // by index
  std::map<std::uint16_t, std::uint32_t> machines_;                // of hosts that were placed, by index
  std::map<std::pair<std::uint16_t, std::uint16_t>, link> links_;  // by indices, from and to
  std::uint64_t next_stream_ = 1;
};

}  // namespace holdfast::sim
