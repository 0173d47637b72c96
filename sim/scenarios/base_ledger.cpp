// A capacity ledger at its edge: fibers reserve, commit, give back, and wait for room. A release that a waiter misses
// is a deadlock, a waiter that wakes itself a livelock.
#include <sim/scenarios/base_stage.hpp>

#include <holdfast/base/capacity_ledger.hpp>

namespace holdfast::sim {

namespace {

constexpr std::uint64_t ceiling = 10;

// The stage outlives ledger and task.
task<result<reservation>> reserve_patiently(task_context, capacity_ledger* ledger, std::uint64_t bytes) {
  for (;;) {
    const std::uint64_t seen = ledger->epoch();
    auto reserved = ledger->reserve(bytes);
    if (reserved || reserved.error().code != error_code::budget_exceeded) co_return reserved;
    co_await ledger->wait_past(seen, platform::never);
  }
}

class ledger_stage final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-ledger";
  static constexpr std::string_view scenario_text =
      "fibers reserve, commit, give back and wait for room at the edge of one ledger";

  explicit ledger_stage(world& w) : base_stage(w, "base ledger") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t lane, std::int64_t step, bool extras) {
    const auto bytes = static_cast<std::int64_t>(random.between(3, 8));
    if (lane == 0 && step == 0) return {who, "reserve", {{"bytes", 7}}, {}};
    switch (random.below(7)) {
      case 0:
      case 1: return {who, "reserve", {{"bytes", bytes}}, {}};
      case 2: return {who, "drop", {}, {}};
      case 3: return {who, "commit", {}, {}};
      case 4: return {who, "release", {}, {}};
      case 5: return {who, extras ? "wait_task" : "wait", {{"bytes", bytes}}, {}};
      default: return {who, "wait", {{"bytes", bytes}}, {}};
    }
  }

  std::optional<std::string> inspect(const op& step) const override {
    if (step.what == "drop" || step.what == "commit" || step.what == "release") return std::nullopt;
    if (step.what != "reserve" && step.what != "wait" && step.what != "wait_task")
      return "there is no such step; there are commit, drop, release, reserve, wait, wait_task";
    if (const std::int64_t bytes = step.number("bytes"); bytes < 1 || bytes > static_cast<std::int64_t>(ceiling))
      return "bytes is not in 1..10";
    return std::nullopt;
  }

  void open(platform::host&) override { ledger_.make(1, ceiling, log()); }

  step_result run(const std::string& who, const op& step) override {
    const auto bytes = static_cast<std::uint64_t>(step.number("bytes"));
    lane& mine = lane_of(who);
    step_result came;
    if (step.what == "reserve") {
      mine.open.drop();
      auto reserved = ledger_->reserve(bytes);
      if (!reserved) came = {false, static_cast<std::uint64_t>(reserved.error().code)};
      // Others may give back at any time, but what was never charged cannot have been in the way.
      expect(reserved || reserved.error().numbers[1] + bytes > ceiling, "what fits is reserved");
      if (reserved) mine.open = std::move(*reserved);
    } else if (step.what == "drop") {
      mine.open.drop();
    } else if (step.what == "commit") {
      // A grant that is overwritten would keep its charge.
      mine.held.release();
      mine.held = mine.open.commit();
    } else if (step.what == "release") {
      mine.held.release();
    } else {
      // Who waits for room holds none, or two waiters could wait for each other.
      give_back(mine);
      bool waited = true;
      mine.open = step.what == "wait" ? wait_blocking(bytes) : wait_in_task(bytes, waited);
      if (!waited) return {false, 1};
      expect(static_cast<bool>(mine.open), "whoever waits gets its bytes");
      // And keeps it for a moment only: another may wait for as much.
      mine.open.drop();
    }
    expect(ledger_->snapshot().charged_bytes <= ceiling, "the ceiling holds");
    return came;
  }

  void lane_ended(const std::string& who) override {
    give_back(lane_of(who));
    subject_of(who).destroy();
  }

  void close() override {
    const capacity_snapshot books = ledger_->snapshot();
    expect(books.charged_bytes == 0 && books.reserved_bytes == 0, "everything was given back");
    expect(!books.corrupt && books.over_releases == 0, "nothing was given back twice");
    ledger_.destroy();
  }

 private:
  struct lane {
    reservation open;
    grant held;
  };
  subject<lane>& subject_of(const std::string& who) {
    kernel_scope kernel;
    return lanes_[who];
  }
  lane& lane_of(const std::string& who) {
    subject<lane>& mine = subject_of(who);
    if (!mine) mine.make();
    return *mine;
  }
  static void give_back(lane& mine) {
    mine.open.drop();
    mine.held.release();
  }
  reservation wait_blocking(std::uint64_t bytes) {
    for (;;) {
      const std::uint64_t seen = ledger_->epoch();
      auto reserved = ledger_->reserve(bytes);
      if (reserved) return std::move(*reserved);
      if (reserved.error().code != error_code::budget_exceeded) return reservation();
      ledger_->wait_past_blocking(seen, platform::never);
    }
  }
  // `waited` false: there was no memory to wait with.
  reservation wait_in_task(std::uint64_t bytes, bool& waited) {
    awaited<result<reservation>> ended(owner());
    ended.start(reserve_patiently(context("reserve"), ledger_.get(), bytes));
    auto& answer = ended.wait();
    waited = !ended.out_of_memory();
    if (!answer || !*answer) return reservation();
    return std::move(**answer);
  }

  subject<capacity_ledger> ledger_;
  std::map<std::string, subject<lane>> lanes_;
};

}  // namespace

void add_base_ledger_scenario() { add_scenario(std::make_unique<base_scenario<ledger_stage>>()); }

}  // namespace holdfast::sim
