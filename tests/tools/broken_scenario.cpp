// Tiny scenarios that are wrong on purpose, for the tests of the tools: what the tools say and leave behind must be
// tested on failures that are there for certain.
#include <holdfast/platform/atomic.hpp>

#include <sim/faults/fault_plan.hpp>
#include <sim/kernel/host.hpp>
#include <sim/kernel/world.hpp>
#include <sim/scenarios/scenario.hpp>

#include <csignal>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace holdfast::sim;

// What the fibers of a run share. They refer to it plainly: an abandoned fiber destroys nothing.
struct shared_state {
  explicit shared_state(world& of) : w(of) {}
  world& w;
  holdfast::platform::atomic<std::uint64_t> counter{0};
  std::uint64_t expected = 0;
  std::size_t unfinished = 0;
  int inside = 0;
  bool spins = false;
  std::vector<std::pair<std::string, std::vector<op>>> lanes;
};

// Each call looks at the room of the one before, and adds after the next: no compiler makes a loop of it.
std::uint64_t descend(std::uint64_t left, const volatile char* above) {
  volatile char room[1024];
  room[0] = static_cast<char>(left);
  if (above != nullptr) room[1] = above[0];
  return left == 0 ? 0 : descend(left - 1, room) + static_cast<std::uint64_t>(room[0] == static_cast<char>(left));
}

// Steps of the fibers of one host.
void execute(shared_state& s, const op& step) {
  if (step.what == "add") {
    const std::uint64_t seen = s.counter.load();
    s.counter.store(seen + 1);
    ++s.expected;
  } else if (step.what == "add_right") {
    s.counter.fetch_add(1);
    ++s.expected;
  } else if (step.what == "enter") {
    if (++s.inside == 2) std::raise(SIGSEGV);
    s.w.point(op_kind::yield);
    --s.inside;
  } else if (step.what == "spin") {
    for (volatile bool on = s.spins; on;) {
    }
  } else if (step.what == "await") {
    // Nobody adds.
    while (s.counter.load() == 0) {
    }
  } else if (step.what == "descend") {
    s.w.point(op_kind::yield);
    s.expected += descend(std::uint64_t{1} << 40, nullptr);
  } else if (step.what == "heed" || step.what == "ignore" || step.what == "die") {
    kernel_scope kernel;
    host& here = *s.w.running_host();
    const fault* const struck = fault_plan::of(s.w).strike(here, "nic.register");
    if (struck == nullptr || step.what == "ignore") return;
    s.w.log(&here, hardware_event::nic_register_refused, 1, 4096);
    if (step.what != "die") return;
    if (struck->what == "refuse") s.w.violate("T-2", "a refusal was not survived");
    if (struck->what == "never") std::raise(SIGSEGV);
  } else if (step.what == "stray") {
    // A number that no seed decides.
    static std::uint64_t runs = 0;
    kernel_scope kernel;
    s.w.log(s.w.running_host(), hardware_event::op_ended, ++runs, 1, 0);
  }
}

bool known(const std::string& what) {
  for (const char* name : {"add", "add_right", "await", "descend", "die", "enter", "heed", "ignore", "spin", "stray"}) {
    if (what == name) return true;
  }
  return false;
}

class broken final : public scenario {
 public:
  broken(std::string name, std::string text, std::string step, std::vector<fault> faults)
      : name_(std::move(name)), text_(std::move(text)), step_(std::move(step)), faults_(std::move(faults)) {}

  std::string_view name() const noexcept override { return name_; }
  std::string_view text() const noexcept override { return text_; }
  bool small() const noexcept override { return true; }
  std::vector<parameter> describe_parameters() const override {
    return {{"fibers", "fibers that run the step", 2, 1, 8},
            {"times", "how often each runs it", 1, 1, 10'000'000},
            {"spins", "step 'spin' never ends", 0, 0, 1}};
  }

  plan generate(const parameters& p, std::uint64_t) const override {
    plan out;
    out.faults = faults_;
    for (std::int64_t i = 0; i < p.at("fibers"); ++i) {
      out.ops.push_back({"a/app-" + std::to_string(i + 1), step_, {{"times", p.at("times")}}, {}});
    }
    return out;
  }

  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    const auto shared = std::make_shared<shared_state>(w);
    for (const op& step : what.ops) {
      if (!known(step.what)) return std::unexpected("there is no op '" + step.what + "'");
      if (!step.who.starts_with("a/")) return std::unexpected("op of '" + step.who + "': there is one host, a");
      if (shared->lanes.empty() || shared->lanes.back().first != step.who) shared->lanes.push_back({step.who, {}});
      shared->lanes.back().second.push_back(step);
    }
    shared->spins = p.at("spins") != 0;
    host& a = w.add_host("a");
    shared->unfinished = shared->lanes.size();
    for (std::size_t lane = 0; lane < shared->lanes.size(); ++lane) {
      shared_state* s = shared.get();
      a.spawn(std::string_view(s->lanes[lane].first).substr(2), [s, lane] {
        for (const op& step : s->lanes[lane].second) {
          for (std::int64_t left = step.number("times", 1); left != 0; --left) execute(*s, step);
        }
        if (--s->unfinished != 0) return;
        const std::uint64_t counted = s->counter.load();
        kernel_scope kernel;
        if (counted != s->expected) {
          s->w.violate("T-1", "an update was lost: " + std::to_string(counted) + " of " + std::to_string(s->expected));
        }
      });
    }
    return shared;
  }

 private:
  std::string name_, text_, step_;
  std::vector<fault> faults_;
};

std::unique_ptr<scenario> make(const char* name, const char* text, const char* step, std::vector<fault> faults = {}) {
  return std::make_unique<broken>(name, text, step, std::move(faults));
}

// With two fibers that run the step once each, there is no third pass.
fault refuse(std::uint64_t nth) { return {"nic.register", "a", nth, 1, "refuse", 0}; }

scenario_registrar lost(make("test-lost-update", "fibers add by load and store", "add"));
scenario_registrar right(make("test-right", "fibers add in one step", "add_right"));
scenario_registrar crash(make("test-crash", "crashes when two fibers meet", "enter"));
scenario_registrar spin(make("test-spin", "may never come to a scheduling point", "spin"));
scenario_registrar deep(make("test-recursion", "calls itself without end", "descend"));
scenario_registrar livelock(make("test-livelock", "looks again and again for what never comes", "await"));
scenario_registrar heeded(make("test-fault-heeded", "asks for a planned fault and acts on it", "heed", {refuse(2)}));
scenario_registrar ignored(make("test-fault-ignored", "asks for a planned fault and does nothing", "ignore",
                                {refuse(1)}));
scenario_registrar idle(make("test-fault-idle", "plans a fault that never comes", "heed", {refuse(3)}));
scenario_registrar fatal(make("test-fault-fatal", "asks for faults and survives some", "die"));
scenario_registrar stray(make("test-stray", "logs what no seed decides", "stray"));

}  // namespace
