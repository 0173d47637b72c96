// Nodes, each a process of its own, and what is done to them: killed, stopped, started again under their address.
//
// Why this exists: whoever kills must know afterwards what was his doing and what was not. The fleet expects every end
// that it caused; any other end of a process, any sentence of a node, and any answer that does not come is a failure.
//
// Some ends are nobody's doing but the library's. They are recognized by its own words or functions in the log, counted
// by name, and treated as kills; `defects` in fleet.cpp lists them.
//
// Ownership   The fleet owns its processes; none is left when it is destroyed.
// Units       Durations.
// Threading   One thread.
// Failure     `failures`: sentences. Nothing throws.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <tests/processes/network.hpp>

#include <smoke/offer.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::testing::processes {

using steady = std::chrono::steady_clock;

/// How long anything may take that is bounded by nobody's failure, in this build.
std::chrono::milliseconds usual_bound() noexcept;

/// "a=1 b=2".
std::map<std::string, std::uint64_t> numbers_of(std::string_view text);

class fleet {
 public:
  struct shape {
    unsigned nodes = 3;
    bool memory = true;  // GETs through shared memory; over tcp otherwise
    std::uint64_t seed = 1;
    std::uint64_t bytes = std::uint64_t{512} << 10;
    std::chrono::milliseconds bound = usual_bound();
    network* links = nullptr;
  };
  enum class condition : std::uint8_t { absent, running, stopped, ending };

  explicit fleet(const shape& how);
  ~fleet();
  fleet(const fleet&) = delete;
  fleet& operator=(const fleet&) = delete;

  unsigned size() const noexcept { return static_cast<unsigned>(members_.size()); }
  condition state(unsigned node) const noexcept { return members_[node].now; }
  const smoke::offer& offered(unsigned node) const noexcept { return members_[node].offered; }
  const shape& how() const noexcept { return how_; }

  /// A new life, under the same name and port. Returns when it serves and everybody was told.
  bool start(unsigned node);
  void start_all();
  void kill(unsigned node);
  void stop(unsigned node);
  void resume(unsigned node);
  /// Asks it to end; `wait_for_end` says how it did.
  void ask_to_end(unsigned node, bool quietly);
  /// Waits until it is gone. Its last words, `ended ...`; none: it was a failure, or it fell by the library.
  std::optional<std::string> wait_for_end(unsigned node);
  void tell(unsigned node, const std::string& line);
  void tell_all(const std::string& line);
  /// Hears what nodes say for that long.
  void listen(std::chrono::milliseconds how_long);
  /// Waits for a line that begins with `word`, and gives its rest.
  std::optional<std::string> answer(unsigned node, std::string_view word, std::chrono::milliseconds bound);
  /// The numbers of `state`, as they are from now on; empty if it does not answer.
  std::map<std::string, std::uint64_t> numbers(unsigned node);
  /// Waits until a number of `state` is `value`.
  bool wait_for(unsigned node, const std::string& name, std::uint64_t value, std::chrono::milliseconds bound);

  /// Anything that breaks connections which others may be served by.
  void note_loss() noexcept { ++losses_; }
  const std::vector<std::string>& failures() const noexcept { return failures_; }
  void fail(std::string sentence);
  /// Lives that the library ended, see above: how many by each of its defects.
  const std::map<std::string, std::uint64_t>& fallen() const noexcept { return fallen_; }
  /// Sums over all lives of what their last `state` or `ended` said.
  const std::map<std::string, std::uint64_t>& sums() const noexcept { return sums_; }

 private:
  struct member {
    condition now = condition::absent;
    pid_t pid = -1;
    int to = -1, from = -1, log = -1;
    unsigned life = 0;
    std::uint16_t port = 0;
    std::uint64_t seed = 0;
    smoke::offer offered;
    std::string input;
    std::deque<std::string> lines;
    std::map<std::string, std::uint64_t> last;
    std::optional<std::string> ended;
    steady::time_point end_by{};
  };
  std::string place(unsigned node) const;
  std::string log_of(const member& one) const;
  bool spawn(unsigned node);
  void hear(unsigned node);
  void gone(unsigned node, bool expected);
  void tell_of(unsigned node);

  const shape how_;
  std::vector<member> members_;
  std::vector<std::string> failures_;
  std::uint64_t losses_ = 0, asked_ = 0, last_seed_;
  std::map<std::string, std::uint64_t> fallen_;
  std::map<std::string, std::uint64_t> sums_;
};

}  // namespace holdfast::testing::processes
