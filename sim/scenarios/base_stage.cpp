#include <sim/scenarios/base_stage.hpp>

#include <sim/kernel/fiber.hpp>

namespace holdfast::sim {

step_result base_stage::execute(host&, const op& step, std::uint64_t) {
  const step_result came = run(step.who, step);
  bool last = false;
  {
    kernel_scope kernel;
    last = --left_.find(step.who)->second == 0;
  }
  if (last) lane_ended(step.who);
  return came;
}

void base_stage::expect(bool held, std::string_view sentence) {
  if (held) return;
  kernel_scope kernel;
  world_.violate(invariant_, "not so: " + std::string(sentence));
}

void base_stage::main(host& machine) {
  platform::host on(machine, 1);
  event_log log(on.clock());
  frame_pool frames(0);
  const task_environment environment(on.executor(), on.clock(), log, frames);
  log_ = &log;
  environment_ = &environment;
  open(on);
  work_->spawn(machine, done_);
  done_.wait(world_);
  close();
  on.stop();
  expect(frames.frames_out() == 0, "every frame of a task is gone in the end");
}

std::expected<std::shared_ptr<void>, std::string> start_stage(world& w, std::shared_ptr<base_stage> stage,
                                                              const plan& what) {
  kernel_scope kernel;
  stage->owned_plan_ = what;
  for (const op& step : stage->owned_plan_.ops) ++stage->left_[step.who];
  auto work = workload::make(stage->owned_plan_, *stage);
  if (!work) return std::unexpected(work.error());
  for (const std::string& name : work->hosts())
    if (name != "m") return std::unexpected("there is one host, \"m\", and no \"" + name + "\"");
  stage->work_.emplace(std::move(*work));
  host& machine = w.add_host("m");
  machine.spawn("main", [s = stage.get(), &machine] { s->main(machine); });
  return stage;
}

}  // namespace holdfast::sim
