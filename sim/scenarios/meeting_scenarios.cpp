// Scenarios of hosts that meet: two that connect to each other at the same time, and many that send to one at once.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;
constexpr std::int64_t us = 1'000, ms = 1'000'000, second = 1'000'000'000;

void add(plan& made, const std::string& who, const std::string& what, std::map<std::string, std::int64_t> numbers = {},
         std::map<std::string, std::string> words = {}) {
  made.ops.push_back(make_op(who, what, std::move(numbers), std::move(words)));
}

void offer(plan& made, const std::string& who, std::int64_t slot, std::int64_t bytes, const std::string& name) {
  add(made, who, "alloc", {{"slot", slot}, {"bytes", bytes}});
  add(made, who, "fill", {{"slot", slot}, {"seed", 40 + slot}});
  add(made, who, "publish", {{"slot", slot}}, {{"name", name}});
}

class symmetric_start final : public scenario {
 public:
  std::string_view name() const noexcept override { return "symmetric-start"; }
  std::string_view text() const noexcept override {
    return "two hosts connect to each other at the same time; one connection of theirs is left, and it serves both for "
           "as "
           "long as they want (TP-T10, TP-H28)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"machines", "1: both are processes of one machine; 2: of two; 3: the seed says", 3, 1, 3}};
  }
  plan generate(const parameters&, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, name());
    plan made;
    const auto sleep = [&](const std::string& who, std::int64_t longest_ns) {
      add(made, who, "sleep", {{"ns", static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(longest_ns)))}});
    };
    for (const std::string self : {"a", "b"}) {
      const std::string other = self == "a" ? "b" : "a", who = self + "/app";
      offer(made, who, 30, 2 * granule, "page-" + self);
      add(made, who, "alloc", {{"slot", 0}, {"bytes", 2 * granule}});
      // Both are there: what follows is their meeting, and nothing else.
      add(made, who, "wait", {}, {{"name", "page-" + other}});
      if (draw.chance(400)) sleep(who, draw.chance(500) ? 20 * us : 200 * us);
      add(made, who, "connect", {}, {{"host", other}});
      if (draw.chance(500)) add(made, who, "get", {{"slot", 0}}, {{"name", "page-" + other}});
      // Longer than the one that lost may last.
      sleep(who, 200 * us);
      add(made, who, "sleep", {{"ns", draw.chance(300) ? 12 * second : 5 * second}});
      // What the first GET had may be lost with a connection that lost.
      add(made, who, "alloc", {{"slot", 1}, {"bytes", 2 * granule}});
      add(made, who, "get", {{"slot", 1}, {"must", 1}}, {{"name", "page-" + other}});
      // Who is done leaves, and parts them.
      add(made, who, "publish", {{"slot", 30}}, {{"name", "served-" + self}});
      add(made, who, "wait", {}, {{"name", "served-" + other}});
    }
    if (draw.chance(400)) {
      const auto ns = static_cast<std::int64_t>(draw.below(300 * us));
      const char* const from = draw.chance(500) ? "a" : "b";
      const char* const to = draw.chance(500) ? "a" : "b";
      add(made, "a/link", "slow", {{"ns", ns}}, {{"host", from}, {"to", to}});
    }
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.one_machine = p.at("machines") == 1 || (p.at("machines") == 3 && w.stream("symmetric-start").chance(500));
    return start_fleet(w, how, what);
  }
};

class flood final : public scenario {
 public:
  std::string_view name() const noexcept override { return "flood"; }
  std::string_view text() const noexcept override {
    return "an owner that was stopped finds the requests of all its readers when it goes on, and has requests of its "
           "own "
           "(TP-H6)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs of each reader at a time", 10, 1, 20},
            {"batch", "calls of the library between two looks", 2, 1, 16}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, name());
    const std::int64_t gets = p.at("gets"), bytes = granule;
    plan made;
    offer(made, "a/app", 30, bytes, "page-a");
    for (std::int64_t i = 0; i < 3; ++i) add(made, "a/app", "alloc", {{"slot", i}, {"bytes", bytes}});
    offer(made, "b/app", 30, bytes, "page-b");
    for (const std::string reader : {"b/app", "c/app", "d/app"}) {
      for (std::int64_t i = 0; i < gets; ++i) add(made, reader, "alloc", {{"slot", i}, {"bytes", bytes}});
      add(made, reader, "wait", {}, {{"name", "page-a"}});
      add(made, reader, "connect", {}, {{"host", "a"}});
      add(made, reader, "get", {{"slot", 0}}, {{"name", "page-a"}});
    }
    add(made, "a/app", "wait", {}, {{"name", "page-b"}});
    add(made, "a/app", "connect", {}, {{"host", "b"}});
    add(made, "a/app", "publish", {{"slot", 30}}, {{"name", "met"}});
    add(made, "a/app", "wait", {}, {{"name", "stopped"}});
    for (std::int64_t i = 0; i < 3; ++i) {
      add(made, "a/app", "get_start", {{"slot", i}}, {{"name", "page-b"}});
      if (draw.chance(300)) add(made, "a/app", "sleep", {{"ns", static_cast<std::int64_t>(draw.below(2 * us))}});
    }
    add(made, "b/app", "wait", {}, {{"name", "met"}});
    add(made, "b/app", "pause", {}, {{"host", "a"}});
    add(made, "b/app", "publish", {{"slot", 30}}, {{"name", "stopped"}});
    for (const std::string reader : {"b/app", "c/app", "d/app"}) {
      if (reader != "b/app") add(made, reader, "wait", {}, {{"name", "stopped"}});
      for (std::int64_t i = 0; i < gets; ++i) add(made, reader, "get_start", {{"slot", i}}, {{"name", "page-a"}});
    }
    add(made, "b/app", "sleep", {{"ns", static_cast<std::int64_t>(draw.between(50 * us, 500 * us))}});
    add(made, "b/app", "resume", {}, {{"host", "a"}});
    for (std::int64_t i = 0; i < 3; ++i) add(made, "a/app", "await", {{"slot", i}, {"ns", 500 * ms}});
    for (const std::string reader : {"b/app", "c/app", "d/app"})
      for (std::int64_t i = 0; i < gets; ++i) add(made, reader, "await", {{"slot", i}, {"ns", 500 * ms}});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b", "c", "d"};
    how.progress_batch = static_cast<unsigned>(p.at("batch"));
    how.library_batch = 1;
    return start_fleet(w, how, what);
  }
};

}  // namespace

void add_meeting_scenarios() {
  add_scenario(std::make_unique<symmetric_start>());
  add_scenario(std::make_unique<flood>());
}

}  // namespace holdfast::sim
