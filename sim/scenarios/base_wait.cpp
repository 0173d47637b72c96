// Questions to event cells: answers, deadlines and cancellations from other fibers race for a task and its child.
// Exactly one of them wins, and a producer is told whether its answer was taken.
#include <sim/scenarios/base_stage.hpp>

#include <holdfast/base/event_cell.hpp>

#include <array>

namespace holdfast::sim {

namespace {

using answer = std::expected<int, wait_end>;

// The stage outlives cell and task.
task<result<answer>> ask_cell(task_context, event_cell<int>* cell, platform::time_point deadline) {
  auto got = co_await cell->wait(deadline);
  co_return got;
}

// The child may be answered while its starter is still on its way out.
task<result<answer>> ask(task_context context, event_cell<int>* cell, platform::time_point deadline) {
  auto got = co_await ask_cell(context, cell, deadline);
  co_return got;
}

class wait_stage final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-wait";
  static constexpr std::string_view scenario_text =
      "tasks ask event cells; answers, deadlines and cancellations race, and exactly one wins";
  static constexpr std::int64_t slots = 8;

  explicit wait_stage(world& w) : base_stage(w, "base wait") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t lane, std::int64_t step, bool extras) {
    const auto slot = static_cast<std::int64_t>(random.below(extras ? 2 : 1));
    // Where everything is tried there is one question.
    if (lane == 0 && step < (extras ? slots : 1)) {
      op asked{who, "ask", {{"slot", step}}, {}};
      if (extras && random.below(2) == 0) asked.numbers["ns"] = static_cast<std::int64_t>(random.below(2)) * 1'000;
      return asked;
    }
    return {who, lane % 2 == 1 ? "answer" : "cancel", {{"slot", slot}}, {}};
  }

  std::optional<std::string> inspect(const op& step) const override {
    if (const std::int64_t slot = step.number("slot"); slot < 0 || slot >= slots) return "slot is not in 0..7";
    for (const std::string_view known : {"ask", "answer", "cancel"})
      if (step.what == known) return std::nullopt;
    return "there is no such step; there are answer, ask, cancel";
  }

  void open(platform::host&) override {
    for (question& each : questions_) {
      each.asked.make(cancellation::make());
      each.cell.make();
      each.ended.make(owner());
    }
  }

  step_result run(const std::string&, const op& step) override {
    question& q = questions_[static_cast<std::size_t>(step.number("slot"))];
    if (step.what == "cancel") {
      if (!*q.asked) return {false, 1};
      (*q.asked)->request();
      return {};
    }
    if (step.what == "answer") {
      if (std::exchange(q.answered, true)) return {false, 1};
      int value = 7;
      const bool taken = q.cell->complete(std::move(value));
      q.taken = taken;
      return {taken, 0};
    }
    if (std::exchange(q.begun, true)) return {false, 1};
    q.ns = step.number("ns", -1);
    const platform::time_point deadline =
        q.ns < 0 ? platform::never : platform::time_point(platform::duration(owner().now() + q.ns));
    q.ended->start(ask(context("ask", q.asked->get()), q.cell.get(), deadline));
    return {};
  }

  void lane_ended(const std::string&) override {}

  void close() override {
    for (question& q : questions_) {
      if (q.begun) judge(q);
      q.ended.destroy();
      q.cell.destroy();
      q.asked.destroy();
    }
  }

 private:
  struct question {
    subject<intrusive_ptr<cancellation>> asked;
    subject<event_cell<int>> cell;
    subject<awaited<result<answer>>> ended;
    std::int64_t ns = -1;
    bool begun = false;
    bool answered = false;
    bool taken = false;
  };

  void judge(question& q) {
    // A question that nobody answered is answered now, when every cancellation was delivered.
    const bool last_moment = !std::exchange(q.answered, true);
    if (last_moment) q.taken = q.cell->complete(7);
    auto& came = q.ended->wait();
    if (q.ended->out_of_memory()) return;
    const bool cancelled = *q.asked && (*q.asked)->requested();
    expect(came.has_value() && came->has_value(), "no task is dropped while its executor runs");
    if (!came || !*came) return;
    const answer& got = **came;
    expect(got.has_value() == q.taken, "the consumer has the answer if and only if it was taken from the producer");
    if (got) {
      expect(*got == 7, "the answer is the answer");
      expect(!last_moment || !cancelled, "a question that was cancelled does not wait for an answer");
      return;
    }
    expect(got.error() != wait_end::cancelled || cancelled, "only who was cancelled is cancelled");
    expect(got.error() != wait_end::timed_out || q.ns >= 0, "only a question with a deadline times out");
  }

  std::array<question, slots> questions_;
};

}  // namespace

void add_base_wait_scenario() { add_scenario(std::make_unique<base_scenario<wait_stage>>()); }

}  // namespace holdfast::sim
