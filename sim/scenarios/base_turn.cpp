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
  if (!held)
    co_return fail(held.error() == wait_end::cancelled ? error_code::cancelled : error_code::timed_out, "take");
  co_return std::move(*held);
}

class turn_stage final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-turn";
  static constexpr std::string_view scenario_text =
      "fibers take one turn and release it, also on another thread; waits are cancelled and time out";
  static constexpr std::int64_t slots = 8;

  explicit turn_stage(world& w) : base_stage(w, "base turn") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t lane, std::int64_t step, bool extras) {
    if (step % 2 != 0) return {who, extras && random.below(2) == 0 ? "release_elsewhere" : "release", {}, {}};
    if (!extras) return {who, lane == 0 && random.below(2) == 0 ? "try_take" : "take", {}, {}};
    switch (random.below(6)) {
      case 0: return {who, "cancel", {{"slot", static_cast<std::int64_t>(random.below(3))}}, {}};
      case 1: return {who, "try_take", {}, {}};
      case 2: return {who, "take", {{"slot", lane % slots}, {"ns", 1'000}}, {}};
      default: return {who, "take", {{"slot", lane % slots}}, {}};
    }
  }

  std::optional<std::string> inspect(const op& step) const override {
    if (const std::int64_t slot = step.number("slot"); slot < 0 || slot >= slots) return "slot is not in 0..7";
    for (const std::string_view known : {"take", "try_take", "release", "release_elsewhere", "cancel"})
      if (step.what == known) return std::nullopt;
    return "there is no such step; there are cancel, release, release_elsewhere, take, try_take";
  }

  void open(platform::host&) override {
    turn_.make();
    for (auto& each : asked_) each.make(cancellation::make());
  }

  step_result run(const std::string& who, const op& step) override {
    const auto slot = static_cast<std::size_t>(step.number("slot"));
    if (step.what == "cancel") {
      if (!*asked_[slot]) return {false, 1};
      (*asked_[slot])->request();
      return {};
    }
    subject<turn::holder>& mine = holder_of(who);
    if (step.what == "release_elsewhere" && mine) {
      --holders_;
      auto other = platform::thread::start("other", [held = std::move(*mine)]() mutable { held.release(); });
      if (other) other->join();
      mine.destroy();
      return {};
    }
    // Who waits for the turn while it has it would wait for itself.
    release(who);
    if (step.what == "release" || step.what == "release_elsewhere") return {};
    if (step.what == "try_take") {
      turn::holder held = turn_->try_take();
      if (!held) return {false, 1};
      keep(mine, std::move(held));
      return {};
    }
    return take_patiently(mine, step);
  }

  void lane_ended(const std::string& who) override { release(who); }

  void close() override {
    expect(!turn_->taken() && turn_->waiting() == 0, "nobody has the turn or waits for it in the end");
    turn_.destroy();
    for (auto& each : asked_) each.destroy();
  }

 private:
  step_result take_patiently(subject<turn::holder>& mine, const op& step) {
    const std::int64_t ns = step.number("ns", -1);
    const platform::time_point deadline =
        ns < 0 ? platform::never : platform::time_point(platform::duration(owner().now() + ns));
    // Without a slot nobody can cancel.
    const bool cancellable = step.numbers.contains("slot");
    const auto slot = static_cast<std::size_t>(step.number("slot"));
    awaited<result<turn::holder>> ended(owner());
    cancellation* const asked = cancellable ? asked_[slot]->get() : nullptr;
    ended.start(take(context("take", asked), turn_.get(), deadline));
    auto& answer = ended.wait();
    if (ended.out_of_memory()) return {false, 1};
    expect(answer.has_value(), "no task is dropped while its executor runs");
    if (!answer) return {false, 1};
    if (*answer) {
      keep(mine, std::move(**answer));
      return {};
    }
    if (answer->error().code == error_code::cancelled)
      expect(asked != nullptr && asked->requested(), "only who was cancelled is cancelled");
    expect(answer->error().code != error_code::timed_out || ns >= 0, "only a wait with a deadline times out");
    return {false, static_cast<std::uint64_t>(answer->error().code)};
  }
  void keep(subject<turn::holder>& mine, turn::holder held) {
    expect(++holders_ == 1, "one fiber has the turn");
    mine.make(std::move(held));
    // A moment in which another fiber could run and have it, too.
    moment_.load();
  }
  void release(const std::string& who) {
    subject<turn::holder>& mine = holder_of(who);
    if (!mine) return;
    --holders_;
    mine.destroy();
  }
  subject<turn::holder>& holder_of(const std::string& who) {
    kernel_scope kernel;
    return holder_[who];
  }

  subject<turn> turn_;
  std::array<subject<intrusive_ptr<cancellation>>, slots> asked_;
  std::map<std::string, subject<turn::holder>> holder_;
  int holders_ = 0;
  platform::atomic<int> moment_{0};
};

}  // namespace

void add_base_turn_scenario() { add_scenario(std::make_unique<base_scenario<turn_stage>>()); }

}  // namespace holdfast::sim
