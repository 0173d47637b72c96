// Sequential properties of core: RapidCheck invents the commands outside, one fiber of a quiet world executes them.
//
// Why this exists: the platform's primitives want a world around them, and RapidCheck's exceptions may not leave a
// fiber. So a body notes what is not as the model says, and the property fails afterwards.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/host.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>

#include <rapidcheck.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::properties {

/// The events of one run, by kind.
class event_list final : public sim::listener {
 public:
  void on_event(sim::world&, const sim::logged_event& e) override { events.push_back(e); }
  std::size_t count(event_id id) const {
    std::size_t n = 0;
    for (const auto& e : events) n += e.kind == id;
    return n;
  }
  std::vector<sim::logged_event> events;
};

class model_run {
 public:
  /// On the fiber: what the model says is not so, unless `held`. The first is kept.
  void expect(bool held, std::string_view sentence, std::size_t step) {
    if (held) return;
    const sim::kernel_scope kernel;
    if (!failed_) failed_ = "step " + std::to_string(step) + ": not so: " + std::string(sentence);
  }
  /// Runs `body` and fails the property if anything was not so, or if the world saw a violation.
  void run(std::move_only_function<void(platform::host&)> body) {
    sim::fifo_strategy fifo;
    {
      sim::world w(sim::world_settings{.seed = 1}, fifo);
      w.attach(events);
      sim::host& machine = w.add_host("m");
      machine.spawn("main", [&] {
        platform::host host(machine, 1);
        body(host);
      });
      w.run();
      if (w.violated() && !failed_) failed_ = w.violated()->invariant + ": " + w.violated()->message;
    }
    if (failed_) RC_FAIL(*failed_);
  }
  event_list events;

 private:
  std::optional<std::string> failed_;
};

/// One command: what to do, and two numbers whose meaning depends on it.
struct command {
  unsigned kind;
  unsigned a;
  unsigned b;
};
inline void showValue(const command& c, std::ostream& out) { out << c.kind << '(' << c.a << ',' << c.b << ')'; }

/// Lists of up to some hundred commands of `kinds` kinds with numbers below `below`.
inline rc::Gen<std::vector<command>> commands(unsigned kinds, unsigned below) {
  return rc::gen::scale(
      4.0,
      rc::gen::container<std::vector<command>>(rc::gen::resize(
          100, rc::gen::apply([](unsigned kind, unsigned a, unsigned b) { return command{kind, a, b}; },
                              rc::gen::inRange(0u, kinds), rc::gen::inRange(0u, below), rc::gen::inRange(0u, below)))));
}

}  // namespace holdfast::properties
