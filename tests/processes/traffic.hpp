// What a node does all the time: fetches from the others, and looks at every byte.
//
// Why this exists: a byte that lands outside the span it was meant for is found only if somebody knows what stood there.
// So every byte of a node's memory has a known value: what it serves, guards that lie between the destinations and come
// and go, the end of each destination, and each destination before its fetch.
//
// Ownership   Refers to the runtime, which is older. What a fetch never gave back is the core's.
// Units       Bytes; time that the node was awake (see `awake_clock`).
// Threading   One thread.
// Failure     By sentence, to whoever was given: a node goes on, so that the end of the same run is seen, too.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/pinned/pool.hpp>
#include <holdfast/runtime/runtime.hpp>
#include <holdfast/transport/transport.hpp>

#include <smoke/awaited.hpp>
#include <smoke/offer.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace holdfast::testing::processes {

/// Time in which this process ran. A process that was stopped, or not scheduled, has not let anybody wait.
class awake_clock {
 public:
  using duration = std::chrono::nanoseconds;
  duration now() noexcept;

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  duration total_{};
};

/// What a driver knows of another node's present life.
struct neighbor {
  std::uint64_t seed = 0;
  smoke::offer offered;
};

struct traffic_rules {
  std::uint64_t seed = 1;
  std::size_t at_once = 4;
  std::uint64_t bytes_max = std::uint64_t{256} << 10;
  /// After a neighbor's death, or after a connection attempt's own bound, whoever waits must have been told by then.
  std::chrono::milliseconds bound{10'000};
  std::chrono::milliseconds connect_timeout{3'000};
};

struct traffic_counts {
  std::uint64_t fetched = 0, failed = 0, cancelled = 0, unknown = 0, refused = 0, bytes = 0, connects = 0;
  std::string text() const;
};

class traffic {
 public:
  static constexpr std::size_t neighbors_max = 4;
  using complaint = std::function<void(const std::string&)>;

  traffic(runtime& core, const traffic_rules& rules, complaint wrong);

  /// Serves `bytes`; the offer. None: it was complained about.
  std::optional<smoke::offer> serve(std::uint64_t bytes, std::uint64_t seed);
  /// The present life of the neighbor in that place. The one before it is over.
  void know(std::size_t place, neighbor whom);
  /// The process of its present life is gone.
  void mourn(std::size_t place);
  void set_on(bool on) noexcept { on_ = on; }
  /// One fetch, whether the traffic is on or not; `told` gets its outcome.
  void fetch(std::size_t place, std::uint64_t bytes, std::function<void(const result<void>&)> told);
  /// Gives up waiting for everything that is pending.
  std::size_t cancel_all();
  /// One look at everything. Does not wait for anything but an allocation.
  void step();
  bool idle() const noexcept { return pending_.empty(); }
  /// Whether a fetch from each neighbor succeeded since `begin_calm`.
  void begin_calm() noexcept { calm_.fill(false); }
  bool calm() const noexcept;
  /// Every guard, and what is served.
  void look_at_everything();
  /// Gives back guards and what is served.
  void drop_buffers();
  const traffic_counts& counts() const noexcept { return counts_; }

 private:
  struct place {
    std::optional<neighbor> whom;
    std::optional<smoke::awaited<result<peer_id>>> connecting;
    awake_clock::duration asked_at{}, next_try{}, mourned_at{};
    bool mourned = false;
  };
  struct pending {
    std::size_t from = 0;
    peer_id who;
    std::uint64_t seed = 0, offset = 0, bytes = 0, tail_seed = 0;
    std::optional<awake_clock::duration> peer_gone_at, cancel_at;
    bool cancelled = false, complained = false;
    std::function<void(const result<void>&)> told;
    smoke::awaited<result<pinned::get_answer>> answer;
  };
  struct guard {
    pinned::buffer memory;
    std::uint64_t seed = 0;
  };

  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : random_() % end; }
  std::uint64_t some_size();
  void connect(place& one);
  bool begin(std::size_t from, std::uint64_t offset, std::uint64_t bytes,
             std::function<void(const result<void>&)> told = {});
  void settle(pending& one);
  void churn();
  void look_at(const guard& one);
  std::optional<pinned::buffer> allocate(std::uint64_t bytes);

  runtime& core_;
  const traffic_rules rules_;
  const complaint wrong_;
  std::mt19937_64 random_;
  awake_clock clock_;
  awake_clock::duration now_{};
  bool on_ = false;
  std::array<place, neighbors_max> places_;
  std::array<bool, neighbors_max> calm_{};
  std::list<pending> pending_;
  std::vector<guard> guards_;
  guard served_;
  std::uint64_t last_seed_ = 0;
  traffic_counts counts_;
};

}  // namespace holdfast::testing::processes
