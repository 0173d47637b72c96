// A gate between fibers that enter, leave, close and drain. Some drain for ever: a wakeup that is lost is a deadlock.
#include <sim/scenarios/base_stage.hpp>

#include <holdfast/base/gate.hpp>

namespace holdfast::sim {

namespace {

// The stage outlives gate and task.
task<result<bool>> drained(task_context, gate* g, platform::time_point deadline) {
  auto done = co_await g->drain(deadline);
  co_return done;
}

class gate_stage final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-gate";
  static constexpr std::string_view scenario_text =
      "fibers enter, leave, close and drain one gate; drains without a deadline must end";

  explicit gate_stage(world& w) : base_stage(w, "PM-I24") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t lane, std::int64_t step, bool extras) {
    // The first lanes are what every plan needs to be interesting: somebody inside, somebody who closes and drains.
    if (lane == 0 && step < 2) return {who, step == 0 ? "enter" : "leave", {}, {}};
    if (lane == 1 && step == 0) return {who, "close", {}, {}};
    switch (random.below(lane == 1 ? 3 : 6)) {
      case 0:
      case 1: return {who, "drain", {}, {}};
      case 2: return {who, extras ? "drain_task" : "drain", {}, {}};
      case 3: return extras ? op{who, "drain", {{"ns", 1'000}}, {}} : op{who, "enter", {}, {}};
      case 4: return {who, "enter", {}, {}};
      default: return {who, "leave", {}, {}};
    }
  }

  std::optional<std::string> inspect(const op& step) const override {
    for (const std::string_view known : {"enter", "leave", "close", "drain", "drain_task"})
      if (step.what == known) return std::nullopt;
    return "there is no such step; there are close, drain, drain_task, enter, leave";
  }

  void open(platform::host&) override { gate_.make(1, log()); }

  step_result run(const std::string& who, const op& step) override {
    if (step.what == "enter") return enter(who);
    if (step.what == "leave") {
      leave(who);
    } else if (step.what == "close") {
      close_gate();
    } else {
      return drain(who, step);
    }
    return {};
  }

  void lane_ended(const std::string& who) override {
    leave(who);
    ++over_;
    close_if_nobody_else_can();
  }

  void close() override {
    expect(gate_->closed() && gate_->in_flight() == 0, "everybody has left a closed gate");
    expect(gate_->drain_blocking(platform::never), "it is drained");
    gate_.destroy();
  }

 private:
  step_result enter(const std::string& who) {
    const bool was_closed = closed_;
    gate::ticket ticket = gate_->enter();
    if (!ticket) {
      expect(closing_, "an open gate admits");
      return {false, 1};
    }
    expect(!was_closed, "a closed gate admits nobody");
    expect(!drained_, "nobody enters after a drain");
    ++inside_;
    // A lane holds one ticket: entering again leaves the first.
    subject<gate::ticket>& mine = ticket_of(who);
    if (mine) {
      --inside_;
      *mine = std::move(ticket);
    } else {
      mine.make(std::move(ticket));
    }
    return {};
  }

  void leave(const std::string& who) {
    subject<gate::ticket>& mine = ticket_of(who);
    if (!mine) return;
    --inside_;
    mine.destroy();
  }

  void close_gate() {
    closing_ = true;
    gate_->close();
    closed_ = true;
  }

  step_result drain(const std::string& who, const op& step) {
    // Who drains from inside would wait for itself.
    leave(who);
    const std::int64_t ns = step.number("ns", -1);
    const platform::time_point deadline =
        ns < 0 ? platform::never : platform::time_point(platform::duration(owner().now() + ns));
    ++over_;
    close_if_nobody_else_can();
    bool done = false;
    bool waited = true;
    if (step.what == "drain_task") {
      awaited<result<bool>> ended(owner());
      ended.start(drained(context("drain"), gate_.get(), deadline));
      done = ended.wait().value_or(false).value_or(false);
      waited = !ended.out_of_memory();
    } else {
      done = gate_->drain_blocking(deadline);
    }
    --over_;
    if (done) {
      expect(closing_ && inside_ == 0, "a drained gate is closed and empty");
      drained_ = true;
    } else {
      expect(ns >= 0 || !waited, "a drain without a deadline ends with an empty gate");
    }
    return {done, done ? 0u : 1u};
  }

  // Drains of a gate that no op closes would never end.
  void close_if_nobody_else_can() {
    if (over_ == lanes()) close_gate();
  }

  subject<gate::ticket>& ticket_of(const std::string& who) {
    kernel_scope kernel;
    return tickets_[who];
  }

  subject<gate> gate_;
  std::map<std::string, subject<gate::ticket>> tickets_;
  std::size_t over_ = 0;  // lanes that ended, or that drain
  std::uint64_t inside_ = 0;
  bool closing_ = false;
  bool closed_ = false;
  bool drained_ = false;
};

}  // namespace

void add_base_gate_scenario() { add_scenario(std::make_unique<base_scenario<gate_stage>>()); }

}  // namespace holdfast::sim
