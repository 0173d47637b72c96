// Every schedule with at most so many preemptions, one after the other.
//
// Why this exists: chance may miss; in a small scenario nothing has to be missed. Runs are made again from the start
// (no state is saved), each differing from the one before in its last choice that has an alternative.
//
// Cost        Choosing another fiber, or time, while the current one could go on costs one preemption; so does choosing
//             time while any fiber is runnable. Among fibers while the current one is blocked, and among events while
//             none can run, the choice is free. A fiber that yields gives way for nothing and stays for one.
// Ownership   Keeps one small frame a choice of the deepest run.
// Threading   One OS thread, in kernel scope.
// Failure     `strayed`: the world did not repeat itself under the same choices; the search means nothing then.
#pragma once

#include <sim/kernel/strategy.hpp>

#include <cstdint>
#include <vector>

namespace holdfast::sim {

class exhaustive_strategy final : public strategy {
 public:
  explicit exhaustive_strategy(std::uint32_t preemptions);
  /// "exhaustive:2".
  std::string_view name() const noexcept override { return name_; }
  void begin(world&) override;
  std::uint32_t choose(world& w, const choice_point& at) override;

  /// Prepares the next schedule; false: every one was run. To be called between runs.
  bool advance();
  /// Schedules run, the one that began last included.
  std::uint64_t schedules() const noexcept { return schedules_; }
  bool strayed() const noexcept { return strayed_; }
  /// The choices that the next run is forced to make, oldest first; after them it goes on as `fifo`.
  std::vector<std::uint32_t> forced() const;

 private:
  struct frame {
    std::uint32_t enabled;
    std::uint32_t fibers;
    std::uint32_t unforced;  // entry that costs nothing, tried first
    std::uint32_t tried;     // entries tried in order: `unforced`, then the others from 0
    bool keeps;              // the current fiber could go on: every other entry costs
    bool calm;
    std::uint32_t spent;  // preemptions before this choice
  };
  static std::uint32_t entry_of(const frame& f, std::uint32_t tried) noexcept;
  static std::uint32_t cost_of(const frame& f, std::uint32_t entry) noexcept;

  std::uint32_t preemptions_;
  std::string name_;
  std::vector<frame> frames_;
  std::size_t depth_ = 0;
  std::uint32_t spent_ = 0;
  std::uint64_t schedules_ = 0;
  bool strayed_ = false;
};

}  // namespace holdfast::sim
