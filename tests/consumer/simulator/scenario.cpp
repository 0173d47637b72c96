// A scenario written outside the tree: two fibers that only let each other go first.
#include <sim/kernel/host.hpp>
#include <sim/kernel/world.hpp>
#include <sim/scenarios/scenario.hpp>

#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace {

using namespace holdfast::sim;

class consumer_scenario final : public scenario {
 public:
  std::string_view name() const noexcept override { return "consumer-scenario"; }
  std::string_view text() const noexcept override { return "two fibers of one host yield to each other"; }
  bool small() const noexcept override { return true; }

  plan generate(const parameters&, std::uint64_t) const override {
    plan made;
    for (const char* who : {"a/app-1", "a/app-2"}) {
      op step;
      step.who = who;
      step.what = "yield";
      made.ops.push_back(step);
    }
    return made;
  }

  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    host& a = w.add_host("a");
    for (const op& step : what.ops) {
      a.spawn(std::string_view(step.who).substr(2), [&w] { w.point(op_kind::yield); });
    }
    return std::make_shared<int>(0);
  }
};

scenario_registrar registered(std::make_unique<consumer_scenario>());

}  // namespace
