// Scenarios in which somebody says of a peer that it must read no more, or that it is gone.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;
constexpr std::int64_t us = 1'000, ms = 1'000'000;

class revoked final : public scenario {
 public:
  std::string_view name() const noexcept override { return "revoked"; }
  std::string_view text() const noexcept override {
    return "an owner revokes its reader, or declares it dead, while GETs run in both directions; the reader comes back "
           "or "
           "is refused (TP-I27, TP-H52)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs in flight in each direction", 2, 1, 16},
            {"machines", "1: both are processes of one machine; 2: of two; 3: the seed says", 3, 1, 3},
            {"fails", "in how many of 1000 runs the library of one fails for good", 100, 0, 1000}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "revoked");
    const std::int64_t gets = p.at("gets"), bytes = 3 * granule;
    plan made;
    const auto add = [&made](const std::string& who, const std::string& what,
                             std::map<std::string, std::int64_t> numbers = {},
                             std::map<std::string, std::string> words = {}) {
      made.ops.push_back(make_op(who, what, std::move(numbers), std::move(words)));
    };
    const auto sleep = [&](const std::string& who, std::int64_t longest_ns) {
      add(who, "sleep", {{"ns", static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(longest_ns)))}});
    };
    for (const std::string owner : {"a", "b"}) {
      add(owner + "/app", "alloc", {{"slot", 30}, {"bytes", bytes}});
      add(owner + "/app", "fill", {{"slot", 30}, {"seed", 40}});
      add(owner + "/app", "publish", {{"slot", 30}}, {{"name", "page-" + owner}});
    }
    for (std::int64_t i = 0; i < gets; ++i)
      for (const std::string reader : {"a/app", "b/app"}) add(reader, "alloc", {{"slot", i}, {"bytes", bytes}});
    add("b/app", "wait", {}, {{"name", "page-a"}});
    add("b/app", "connect", {}, {{"host", "a"}});
    add("b/app", "get", {{"slot", 0}}, {{"name", "page-a"}});
    for (std::int64_t i = 0; i < gets; ++i) add("b/app", "get_start", {{"slot", i}}, {{"name", "page-a"}});
    add("a/app", "wait", {}, {{"name", "page-b"}});
    if (draw.chance(500)) add("a/app", "connect", {}, {{"host", "b"}});
    for (std::int64_t i = 0; i < gets; ++i) add("a/app", "get_start", {{"slot", i}}, {{"name", "page-b"}});
    sleep("a/app", draw.chance(500) ? 60 * us : 2 * ms);
    const bool dead = draw.chance(400);
    if (draw.chance(200)) add("a/app", "close", {{"deadline_ns", 200 * us}}, {{"host", "b"}});
    add("a/app", dead ? "declare_dead" : "revoke", {}, {{"host", "b"}});
    if (draw.chance(300)) add("a/app", dead ? "revoke" : "declare_dead", {}, {{"host", "b"}});
    for (std::int64_t i = 0; i < gets; ++i)
      for (const std::string reader : {"a/app", "b/app"}) add(reader, "await", {{"slot", i}, {"ns", 500 * ms}});
    sleep("b/app", 2 * ms);
    // Who was revoked may come again; who was declared dead never does in this life.
    add("b/app", "connect", {}, {{"host", "a"}});
    add("b/app", "alloc", {{"slot", 20}, {"bytes", bytes}});
    add("b/app", "get", {{"slot", 20}}, {{"name", "page-a"}});
    if (draw.chance(200))
      made.faults.push_back({"fabric.delay", "", draw.between(1, 30), draw.between(1, 3), "delay", 300 * us});
    if (draw.chance(150)) made.faults.push_back({"ucp.ep.fail", "b", draw.between(1, 4), 1, "fail", 0});
    if (p.at("fails") != 0 && draw.chance(static_cast<unsigned>(p.at("fails"))))
      made.faults.push_back({"ucp.arm.busy", draw.chance(500) ? "a" : "b", draw.between(1, 20), 1, "error", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.one_machine = p.at("machines") == 1 || (p.at("machines") == 3 && w.stream("revoked").chance(500));
    return start_fleet(w, how, what);
  }
};

}  // namespace

void add_revoke_scenarios() { add_scenario(std::make_unique<revoked>()); }

}  // namespace holdfast::sim
