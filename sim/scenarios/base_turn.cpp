// A turn between fibers: one holder at a time, releases on other threads, waits that are cancelled or time out.
#include <sim/scenarios/base_stage.hpp>

#include <holdfast/base/turn.hpp>
#include <holdfast/platform/thread.hpp>

#include <array>

namespace holdfast::sim {

namespace {

// The stage outlives turn and task.
task<result<turn::holder>> take(task_context, turn* t, platform::time_point deadline) {
  auto held = co_await t->take(deadline);
  if (!held) co_return fail(held.error() == wait_end::cancelled ? error_code::cancelled : error_code::timed_out, "take");
  co_return std::move(*held);
}

class turn_stage final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-turn";
  static constexpr std::string_view scenario_text =
      "fibers take one turn and release it, also on another thread; waits are cancelled and time out";
  static constexpr std::int64_t slots = 8;

  explicit turn_stage(world& w) : base_stage(w, "base turn") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t lane, std::int64_t) {
    switch (random.below(6)) {
      case 0: return {who, "cancel", {{"slot", static_cast<std::int64_t>(random.below(2))}}, {}};
      case 1: return {who, "try_take", {}, {}};
      case 2: return {who, "take_elsewhere", {{"slot", lane % slots}}, {}};
      case 3: return {who, "take", {{"slot", lane % slots}, {"ns", 1'000}}, {}};
      default: return {who, "take", {{"slot", lane % slots}}, {}};
    }
  }

  std::optional<std::string> inspect(const op& step) const override {
    if (const std::int64_t slot = step.number("slot"); slot < 0 || slot >= slots) return "slot is not in 0..7";
    for (const std::string_view known : {"take", "take_elsewhere", "try_take", "cancel"})
      if (step.what == known) return std::nullopt;
    return "there is no such step; there are cancel, take, take_elsewhere, try_take";
  }

  void open(platform::host&) override {
    turn_.make();
    for (auto& each : asked_) each.make(cancellation::make());
  }

  step_result run(const std::string&, const op& step) override {
    const auto slot = static_cast<std::size_t>(step.number("slot"));
    if (step.what == "cancel") {
      cancelled_[slot] = true;
      (*asked_[slot])->request();
      return {};
    }
    if (step.what == "try_take") {
      turn::holder held = turn_->try_take();
      if (!held) return {false, 1};
      use();
      held.release();
      return {};
    }
    const std::int64_t ns = step.number("ns", -1);
    const platform::time_point deadline =
        ns < 0 ? platform::never : platform::time_point(platform::duration(owner().now() + ns));
    awaited<result<turn::holder>> ended(owner());
    start(take(context("take", asked_[slot]->get()), turn_.get(), deadline), ended);
    auto& answer = ended.wait();
    if (!answer) {
      expect(false, "no task is dropped while its executor runs");
      return {false, 1};
    }
    if (!*answer) {
      expect(answer->error().code != error_code::cancelled || cancelled_[slot], "only who was cancelled is cancelled");
      expect(answer->error().code != error_code::timed_out || ns >= 0, "only a wait with a deadline times out");
      return {false, static_cast<std::uint64_t>(answer->error().code)};
    }
    use();
    if (step.what == "take_elsewhere") {
      auto other = platform::thread::start("other", [held = std::move(**answer)]() mutable { held.release(); });
      if (other) other->join();
    } else {
      (*answer)->release();
    }
    return {};
  }

  void lane_ended(const std::string&) override {}

  void close() override {
    expect(!turn_->taken() && turn_->waiting() == 0, "nobody has the turn or waits for it in the end");
    turn_.destroy();
    for (auto& each : asked_) each.destroy();
  }

 private:
  // While somebody has the turn nobody else does, also if another fiber runs meanwhile.
  void use() {
    expect(++holders_ == 1, "one fiber has the turn");
    platform::yield();
    --holders_;
  }

  subject<turn> turn_;
  std::array<subject<intrusive_ptr<cancellation>>, slots> asked_;
  std::array<bool, slots> cancelled_{};
  int holders_ = 0;
};

}  // namespace

void add_base_turn_scenario() { add_scenario(std::make_unique<base_scenario<turn_stage>>()); }

}  // namespace holdfast::sim
