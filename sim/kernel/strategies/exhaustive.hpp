// Every schedule with at most so many preemptions, one after the other.
//
// Why this exists: chance may miss; in a small scenario nothing has to be missed. Runs are made again from the start
// (no state is saved), each differing from the one before in its last choice that has an alternative.
//
// Cost        Choosing another fiber, or time, while the current one could go on costs one preemption; so does choosing
//             time while any fiber is runnable. Among fibers while the current one is blocked, and among events while
//             none can run, the choice is free. A fiber that yields gives way for nothing and stays for one.
// Reduction   In the calm, and where the scenario says so (`world::search`), nothing but order of creation is tried.
//             Where the current fiber is about to use an object that only it touches, nothing else is tried: the same is
//             reached at its next operation on a shared object, for the same price. (It would not be before a lock is
//             given back: there others come to wait for it, and the way back to its holder costs nothing.) Sound for
//             programs without data races on plain memory. Which objects these are is learned from the
//             runs, and the search begins again when it learns that one is not (sim/kernel/object_watch.hpp). To learn it
//             early, it is made with fewer preemptions first.
//             A run that comes to a state that an earlier one has been in, with no more preemptions left, is cut there:
//             which states are one is told by what led to them (sim/kernel/causal_order.hpp). Without a
//             bound exactly one run of each class of equivalent schedules is not cut.
// Ownership   Keeps one small frame a choice of the deepest run, and 16 to 64 bytes a state it has been in.
// Threading   One OS thread, in kernel scope.
// Failure     `strayed`: the world did not repeat itself under the same choices, or did not look the same in what was
//             taken for the same state; the search means nothing then.
#pragma once

#include <sim/kernel/causal_order.hpp>
#include <sim/kernel/object_watch.hpp>
#include <sim/kernel/state_cache.hpp>
#include <sim/kernel/strategy.hpp>

#include <cstdint>
#include <vector>

namespace holdfast::sim {

class exhaustive_strategy final : public strategy {
 public:
  /// As many preemptions, or more, are taken for no bound.
  static constexpr std::uint32_t unbounded = 64;

  explicit exhaustive_strategy(std::uint32_t preemptions, bool reduce = true);
  /// "exhaustive:2".
  std::string_view name() const noexcept override { return name_; }
  void begin(world&) override;
  std::uint32_t choose(world& w, const choice_point& at) override;

  /// Prepares the next schedule; false: every one was run. To be called between runs.
  bool advance();
  /// How often the search began again: it had learned of another shared object, or goes on with more preemptions.
  std::uint64_t restarts() const noexcept { return restarts_; }
  /// Schedules run since the search began last, the one that began last included.
  std::uint64_t schedules() const noexcept { return schedules_; }
  /// Of these, the runs that came to a known state: they were cut there, or had no choice left and ended in it.
  std::uint64_t cut() const noexcept { return cut_; }
  bool strayed() const noexcept { return strayed_ || cache_.contradicted(); }
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
    bool settled;         // nothing else is to be tried here
    std::uint32_t spent;  // preemptions before this choice
  };
  static std::uint32_t entry_of(const frame& f, std::uint32_t tried) noexcept;
  static std::uint32_t cost_of(const frame& f, std::uint32_t entry) noexcept;

  bool nobody_could_tell(const world& w) const noexcept;
  bool begin_again() noexcept;
  bool been_here(const world& w, const choice_point& at, bool keeps);

  const std::uint32_t preemptions_;
  std::uint32_t bound_;  // of the search that is being made
  bool reduce_;
  object_watch watch_;
  causal_order order_;
  state_cache cache_;
  std::uint64_t restarts_ = 0;
  std::string name_;
  std::vector<frame> frames_;
  std::size_t depth_ = 0;
  std::uint32_t spent_ = 0;
  std::uint64_t schedules_ = 0;
  std::uint64_t cut_ = 0;
  bool cut_now_ = false;  // the run that was made last
  bool strayed_ = false;
};

}  // namespace holdfast::sim
