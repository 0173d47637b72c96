#include <sim/scenarios/workload.hpp>

#include <sim/kernel/fiber.hpp>

#include <algorithm>

namespace holdfast::sim {

void latch::open(world& w) {
  kernel_scope kernel;
  w.touch();
  open_ = true;
  for (fiber* f : waiting_) w.wake(*f);
  waiting_.clear();
}

void latch::wait(world& w) {
  w.touch();
  while (!open_) {
    {
      kernel_scope kernel;
      waiting_.push_back(w.running());
    }
    w.block(op_kind::sleep, 0, INT64_MAX);
  }
}

std::expected<workload, std::string> workload::make(const plan& what, interpreter& how) {
  kernel_scope kernel;
  workload made(how);
  std::uint64_t number = 0;
  for (const op& step : what.ops) {
    ++number;
    const std::size_t slash = step.who.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == step.who.size())
      return std::unexpected("op " + std::to_string(number) + ": who \"" + step.who + "\" is not of the form host/fiber");
    if (auto wrong = how.inspect(step))
      return std::unexpected("op " + std::to_string(number) + " (" + step.who + " " + step.what + "): " + *wrong);
    const std::string host = step.who.substr(0, slash);
    const std::string name = step.who.substr(slash + 1);
    auto found = std::find_if(made.lanes_.begin(), made.lanes_.end(),
                              [&](const lane& l) { return l.host == host && l.name == name; });
    if (found == made.lanes_.end()) {
      found = made.lanes_.insert(found, lane{host, name, {}});
      ++made.left_[host];
    }
    found->steps.emplace_back(&step, number);
  }
  return made;
}

std::vector<std::string> workload::hosts() const {
  std::vector<std::string> names;
  for (const lane& l : lanes_)
    if (std::find(names.begin(), names.end(), l.host) == names.end()) names.push_back(l.host);
  return names;
}

void workload::spawn(host& h, latch& done) {
  kernel_scope kernel;
  world& w = h.owner();
  bool any = false;
  for (lane& l : lanes_) {
    if (l.host != h.name()) continue;
    any = true;
    h.spawn(l.name, [this, &h, &w, &l, &done] {
      for (const auto& [step, number] : l.steps) {
        w.touch();  // ops tell each other by the interpreter's books
        w.log(&h, hardware_event::op_began, number);
        const step_result came = how_->execute(h, *step, number);
        w.touch();
        w.log(&h, hardware_event::op_ended, number, came.ok, came.code);
      }
      kernel_scope finished;
      if (--left_[l.host] == 0) done.open(w);
    });
  }
  if (!any) done.open(w);
}

}  // namespace holdfast::sim
