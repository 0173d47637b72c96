// Probes of UCX: one behavior, one probe, written once and run twice, against the library over the loopback device and
// against the double inside a world. tests/conformance/driver_table.py compares the answers.
//
// Why this exists: core is proved against the double, so every behavior that core relies on has to be one of the
// library's. spec/transport.md section 6 names them (F1 to F30).
//
// A probe runs in one process and talks to a second one, the owner, through a board: the owner offers memory, serves,
// and does what it is asked (owner.cpp). A probe answers in a few words; the same words on both sides mean the same.
//
// Ownership   The bench outlives the probe. Threading: one thread, or fiber, for each process.
// Failure     `require` leaves the probe with a sentence, which then is its answer.
#pragma once

#include <holdfast/backends/ucx/ucp_table.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::driver_probe {

inline constexpr std::int64_t ms = 1'000'000;
inline constexpr std::int64_t second = 1'000 * ms;
inline constexpr std::size_t page = 4096;
inline constexpr std::size_t offered_bytes = 256 * 1024;

enum class command : std::uint32_t {
  serve,        // progress; what an owner does by itself
  rest,         // live without progress, until something else is asked for
  unmap,        // deregister the offered memory and keep the pages
  map_again,    // deregister, register again, pack the key again
  map_other,    // register the other half too, and pack its key
  send,         // a message of four bytes over the newest endpoint
  close,        // flush-close the newest endpoint
  call_back,    // connect to the probe's process, which offers as `back_*` say
  fetch,        // post `fetches` GETs of `fetch_bytes` of what the probe offers, and progress no more than that takes
  reject,       // reject connection requests from now on
  mirror,       // make a process of posix alone with two endpoints to the probe's; its worker's address is offered
  read_first,   // a GET of a page through the first of them, which unpacks a key if it has none
  read_second,  // through the second; without progress if the owner rests
  flood,        // GETs through the first that bring more than a queue holds, and rest
  stop,         // clean up and end
};

/// What the two processes tell each other. Plain memory that both see.
struct board {
  std::atomic<std::uint32_t> ready{0};
  std::atomic<std::uint32_t> asked{0};  // number of the newest request
  std::atomic<std::uint32_t> done{0};
  std::atomic<command> what{command::serve};
  std::atomic<std::uint32_t> errors{0};    // error handlers that ran at the owner
  std::atomic<std::uint32_t> messages{0};  // that the owner's handler got
  std::atomic<std::uint32_t> refuse_descriptors{0};
  std::atomic<std::uint32_t> descriptors{0};    // messages that came as a rendezvous descriptor
  std::atomic<std::uint32_t> replies_known{0};  // messages whose reply endpoint was the endpoint that the owner made
  std::atomic<std::uint32_t> replies_other{0};
  std::atomic<std::uint32_t> handler_outside{0};  // callbacks outside progress
  std::atomic<std::uint32_t> reads{0};            // through the first and the second that ended with success
  std::size_t fetch_bytes = 0;
  unsigned fetches = 1;
  std::uint64_t address = 0;
  std::uint16_t port = 0;
  std::uint32_t key_bytes = 0;
  std::array<std::byte, 512> key{};
  std::uint32_t worker_bytes = 0;
  std::array<std::byte, 2048> worker{};
  // What the probe offers to the owner.
  std::uint64_t back_address = 0;
  std::uint16_t back_port = 0;
  std::uint32_t back_worker_bytes = 0;
  std::array<std::byte, 512> back_key{};
  std::array<std::byte, 2048> back_worker{};
  char answer[200] = {};
};

enum class blow { kill, stop, go_on };

/// The side on which a process runs.
class bench {
 public:
  bench(const ucx::ucp_table& table, board& between, bool through_memory)
      : ucp(table), shared(between), over_memory(through_memory) {}
  const ucx::ucp_table& ucp;
  board& shared;
  const bool over_memory;  // false: over tcp

  virtual std::int64_t now_ns() = 0;
  virtual void sleep_ns(std::int64_t duration_ns) = 0;
  /// False: not within that time.
  virtual bool wait_readable(int descriptor, std::int64_t within_ns) = 0;
  virtual std::byte* pages(std::size_t bytes) = 0;
  virtual void give_back(std::byte* base, std::size_t bytes) = 0;
  virtual std::uint32_t owner_address() = 0;  // IPv4, host byte order
  virtual std::uint32_t probe_address() = 0;
  /// To the owner's process.
  virtual void strike(blow how) = 0;

 protected:
  ~bench() = default;
};

struct failure {
  const char* sentence;
};
inline void require(bool holds, const char* sentence) {
  if (!holds) throw failure{sentence};
}

enum class rule {
  same,       // core relies on it: the double gives the library's answer and no other
  may,        // core must not rely on it: the double gives the library's answer among others
  defect,     // a mistake of the library that no caller can answer; the double does not make it
  forbidden,  // core never does it: whatever the library answers, the double calls it misuse
  real_only,  // about the process around the library, which the double does not have
};

inline constexpr unsigned over_tcp = 1, through_memory = 2, over_both = 3;

struct probe {
  const char* name;
  const char* fact;      // of spec/transport.md section 6, or the section that says it
  const char* sentence;  // what is asked
  unsigned where;
  rule how;
  const char* relied_on_by;
  const char* specified;  // what the specification says, if it is another answer than the library's
  void (*run)(bench&);
};

/// In order of name.
std::span<const probe* const> all_probes();
std::span<const probe> progress_probes();
std::span<const probe> endpoint_probes();
std::span<const probe> loss_probes();
std::span<const probe> transfer_probes();
std::span<const probe> message_probes();
std::span<const probe> memory_probes();

/// Writes the probe's answer.
[[gnu::format(printf, 2, 3)]] void answer(bench& b, const char* format, ...);
/// Runs the probe; what it requires and does not get is its answer.
void run_probe(const probe& p, bench& b);
/// The body of the owner's process.
void run_owner(bench& b);

}  // namespace holdfast::driver_probe
