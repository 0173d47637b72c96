// Scenarios of peers and links in trouble: hosts that crash and return, that stop and go on, links that break in one
// direction or in both, and all of it at once.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;
constexpr std::int64_t us = 1'000, ms = 1'000'000, second = 1'000'000'000;

std::int64_t drawn(random_stream& draw, std::int64_t low, std::int64_t high) {
  return static_cast<std::int64_t>(draw.between(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)));
}

void sleep(plan& made, const std::string& who, std::int64_t ns) {
  made.ops.push_back(make_op(who, "sleep", {{"ns", ns}}));
}

// `who` offers a buffer of `bytes` in `slot` under `name`, and keeps it.
void offer(plan& made, const std::string& who, std::int64_t slot, std::int64_t bytes, std::int64_t seed,
           const std::string& name) {
  made.ops.push_back(make_op(who, "alloc", {{"slot", slot}, {"bytes", bytes}}));
  made.ops.push_back(make_op(who, "fill", {{"slot", slot}, {"seed", seed}}));
  made.ops.push_back(make_op(who, "publish", {{"slot", slot}}, {{"name", name}}));
}

// The fiber of a life: "a/owner", then "a/owner@2".
std::string of_life(const std::string& fiber, std::int64_t life) {
  return life == 1 ? fiber : fiber + "@" + std::to_string(life);
}

class crash_and_restart : public scenario {
 public:
  std::string_view name() const noexcept override { return "crash-and-restart"; }
  std::string_view text() const noexcept override {
    return "an owner crashes again and again and returns under its name and address; what its earlier lives published "
           "is "
           "refused (B04, TP-H18, TP-H26)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"rounds", "crashes of the owner", 2, 1, 20},
            {"granules", "size of each transfer, in granules of 4096", 3, 1, 64}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "crash-and-restart");
    const std::int64_t rounds = p.at("rounds"), bytes = p.at("granules") * granule;
    plan made;
    for (std::int64_t life = 1; life <= rounds + 1; ++life)
      offer(made, of_life("a/owner", life), 0, bytes, 40 + life, "page-" + std::to_string(life));
    for (std::int64_t slot = 0; slot < 3; ++slot)
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", slot}, {"bytes", bytes}}));
    for (std::int64_t life = 1; life <= rounds + 1; ++life) {
      const std::string page = "page-" + std::to_string(life);
      made.ops.push_back(make_op("b/app", "wait", {}, {{"name", page}}));
      made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
      made.ops.push_back(make_op("b/app", "get", {{"slot", 0}}, {{"name", page}}));
      for (std::int64_t old = 1; old < life; ++old)
        made.ops.push_back(make_op("b/app", "get", {{"slot", 1}}, {{"name", "page-" + std::to_string(old)}}));
      if (life > rounds) break;
      if (draw.chance(700)) made.ops.push_back(make_op("b/app", "get_start", {{"slot", 1}}, {{"name", page}}));
      if (draw.chance(500)) sleep(made, "b/app", drawn(draw, 0, 60 * us));
      made.ops.push_back(make_op("b/app", "crash", {}, {{"host", "a"}}));
      // Also before anybody could notice that it was gone, and while a GET of the ended life is in flight.
      sleep(made, "b/app", draw.chance(500) ? drawn(draw, 0, 200 * us) : drawn(draw, ms, 100 * ms));
      made.ops.push_back(make_op("b/app", "restart", {}, {{"host", "a"}}));
      if (draw.chance(300)) made.ops.push_back(make_op("b/app", "get_start", {{"slot", 2}}, {{"name", page}}));
      if (draw.chance(700)) made.ops.push_back(make_op("b/app", "await", {{"slot", 1}, {"ns", 200 * ms}}));
    }
    made.ops.push_back(make_op("b/app", "await", {{"slot", 1}, {"ns", 200 * ms}}));
    made.ops.push_back(make_op("b/app", "await", {{"slot", 2}, {"ns", 200 * ms}}));
    if (draw.chance(200))
      made.faults.push_back({"host.crash", "a", draw.between(1, 60), 1, "restart", drawn(draw, 0, 50 * ms)});
    if (draw.chance(200))
      made.faults.push_back({"fabric.delay", "", draw.between(1, 30), draw.between(1, 3), "delay", 300 * us});
    if (draw.chance(150)) made.faults.push_back({"ucp.ep.fail", "b", draw.between(1, 4), 1, "fail", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    return start_fleet(w, how, what);
  }
};

class losses_told final : public crash_and_restart {
 public:
  std::string_view name() const noexcept override { return "losses-told"; }
  std::string_view text() const noexcept override {
    return "crash-and-restart, and hosts ask to be told of peers that are lost: once for each connection (TP-H44)";
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.watch_losses = true;
    return start_fleet(w, how, what);
  }
};

class partitioned final : public scenario {
 public:
  std::string_view name() const noexcept override { return "partition"; }
  std::string_view text() const noexcept override {
    return "the link between owner and reader breaks under GETs, in one direction or both, and heals before or after "
           "the "
           "connection is given up; another reader goes on";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs in flight", 2, 1, 16}, {"rounds", "times that the link breaks", 2, 1, 20}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "partition");
    const std::int64_t gets = p.at("gets"), bytes = 3 * granule;
    plan made;
    offer(made, "a/owner", 0, bytes, 40, "page");
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    for (std::int64_t i = 0; i < gets; ++i)
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", i}, {"bytes", bytes}}));
    made.ops.push_back(make_op("b/app", "wait", {}, {{"name", "page"}}));
    for (std::int64_t round = 0; round < p.at("rounds"); ++round) {
      const bool early = draw.chance(500);
      if (early)
        for (std::int64_t i = 0; i < gets; ++i)
          made.ops.push_back(make_op("b/app", "get_start", {{"slot", i}}, {{"name", "page"}}));
      if (draw.chance(500)) sleep(made, "b/app", drawn(draw, 0, 60 * us));
      const bool from_owner = draw.chance(500);
      made.ops.push_back(make_op("b/app", "partition", {{"one_way", draw.chance(600) ? 1 : 0}},
                                 {{"host", from_owner ? "a" : "b"}, {"to", from_owner ? "b" : "a"}}));
      if (!early)
        for (std::int64_t i = 0; i < gets; ++i)
          made.ops.push_back(make_op("b/app", "get_start", {{"slot", i}}, {{"name", "page"}}));
      if (draw.chance(300)) made.ops.push_back(make_op("b/app", "cancel", {{"slot", 0}}));
      if (draw.chance(200)) made.ops.push_back(make_op("b/app", "close", {{"deadline_ns", 500 * us}}, {{"host", "a"}}));
      // A link that is silent for 16 s is given up at both ends.
      sleep(made, "b/app", draw.chance(700) ? drawn(draw, 0, 2 * ms) : drawn(draw, 10 * second, 20 * second));
      if (draw.chance(800)) made.ops.push_back(make_op("b/app", "heal", {}, {{"host", "a"}, {"to", "b"}}));
      for (std::int64_t i = 0; i < gets; ++i)
        made.ops.push_back(make_op("b/app", "await", {{"slot", i}, {"ns", drawn(draw, ms, 300 * ms)}}));
      made.ops.push_back(make_op("b/app", "heal", {}, {{"host", "a"}, {"to", "b"}}));
      if (draw.chance(600)) made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
      for (std::int64_t i = 0; i < gets; ++i)
        made.ops.push_back(make_op("b/app", "alloc", {{"slot", i}, {"bytes", bytes}}));
      made.ops.push_back(make_op("b/app", "get", {{"slot", 0}}, {{"name", "page"}}));
    }
    made.ops.push_back(make_op("c/app", "connect", {}, {{"host", "a"}}));
    made.ops.push_back(make_op("c/app", "alloc", {{"slot", 0}, {"bytes", bytes}}));
    for (std::int64_t i = 0; i < 4; ++i) {
      made.ops.push_back(make_op("c/app", "get", {{"slot", 0}}, {{"name", "page"}}));
      sleep(made, "c/app", drawn(draw, 0, ms));
    }
    if (draw.chance(300))
      made.faults.push_back(
          {"fabric.slow", draw.chance(500) ? "a" : "b", draw.between(1, 20), 1, "slow", drawn(draw, 10 * us, 5 * ms)});
    if (draw.chance(200)) made.faults.push_back({"fabric.delay", "", draw.between(1, 20), 1, "loss", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b", "c"};
    return start_fleet(w, how, what);
  }
};

class paused final : public scenario {
 public:
  std::string_view name() const noexcept override { return "pause"; }
  std::string_view text() const noexcept override {
    return "an owner is stopped under GETs, for a while or for good: they stay pending, held and counted, their reader "
           "gives "
           "up waiting, and its shutdown keeps its deadline (TP-T5)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs in flight", 2, 1, 16},
            {"deadline_us", "deadline of the shutdown, in microseconds", 2'000, 0, 1'000'000}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "pause");
    const std::int64_t gets = p.at("gets"), bytes = 2 * granule;
    plan made;
    offer(made, "a/owner", 0, bytes, 40, "page");
    for (std::int64_t i = 0; i < gets; ++i)
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", i}, {"bytes", bytes}}));
    made.ops.push_back(make_op("b/app", "wait", {}, {{"name", "page"}}));
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    made.ops.push_back(make_op("b/app", "get", {{"slot", 0}}, {{"name", "page"}}));
    const bool early = draw.chance(300);
    const auto start_all = [&] {
      for (std::int64_t i = 0; i < gets; ++i)
        made.ops.push_back(make_op("b/app", "get_start", {{"slot", i}}, {{"name", "page"}}));
    };
    if (early) start_all();
    if (early && draw.chance(500)) sleep(made, "b/app", drawn(draw, 0, 60 * us));
    made.ops.push_back(make_op("b/app", "pause", {}, {{"host", "a"}}));
    if (!early) start_all();
    // What those who gave up left in flight must not fall into what is granted next.
    for (std::int64_t i = 0; i < gets; ++i)
      made.ops.push_back(make_op("b/app", "await", {{"slot", i}, {"ns", drawn(draw, 10 * us, 5 * ms)}}));
    made.ops.push_back(make_op("b/app", "alloc", {{"slot", 20}, {"bytes", bytes}}));
    made.ops.push_back(make_op("b/app", "fill", {{"slot", 20}, {"seed", 9}}));
    const bool returns = draw.chance(600);
    if (returns) {
      if (draw.chance(500)) sleep(made, "b/app", drawn(draw, 0, 20 * second));
      made.ops.push_back(make_op("b/app", "resume", {}, {{"host", "a"}}));
      sleep(made, "b/app", drawn(draw, 0, 2 * ms));
      if (draw.chance(500)) made.ops.push_back(make_op("b/app", "get", {{"slot", 20}}, {{"name", "page"}}));
    }
    made.ops.push_back(make_op("b/app", "check", {{"slot", 20}}));
    if (draw.chance(300)) made.ops.push_back(make_op("b/app", "get_start", {{"slot", 20}}, {{"name", "page"}}));
    // Somebody who asks while the transport closes, and after it did.
    if (draw.chance(500)) {
      made.ops.push_back(make_op("b/app", "publish", {{"slot", 20}}, {{"name", "leaving"}}));
      made.ops.push_back(make_op("b/late", "wait", {}, {{"name", "leaving"}}));
      for (int i = 0; i < 4; ++i) {
        made.ops.push_back(make_op("b/late", draw.chance(700) ? "connect" : "close", {}, {{"host", "a"}}));
        sleep(made, "b/late", drawn(draw, 0, 100 * us));
      }
    }
    made.ops.push_back(make_op("b/app", "shutdown", {{"deadline_ns", p.at("deadline_us") * 1000}}));
    made.ops.push_back(make_op("b/app", "await", {{"slot", 20}}));
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.may_stay_dead = {"a"};
    // A stopped owner is silent for longer, and lives.
    how.suspect_after_ns = 100 * ms;
    return start_fleet(w, how, what);
  }
};

class shared_memory final : public scenario {
 public:
  std::string_view name() const noexcept override { return "shared-memory"; }
  std::string_view text() const noexcept override {
    return "two processes of one machine: GETs go through its memory, where the death of the owner shows on the "
           "control "
           "connection only, and the end of a GET not at all (TP-T6, TP-T7)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs in flight", 2, 1, 16},
            {"deadline_us", "deadline of the shutdown, in microseconds", 2'000, 0, 1'000'000}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "shared-memory");
    const std::int64_t gets = p.at("gets"), bytes = 3 * granule;
    plan made;
    offer(made, "a/owner", 0, bytes, 40, "page");
    offer(made, "a/owner@2", 0, bytes, 41, "page-2");
    for (std::int64_t i = 0; i < gets; ++i)
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", i}, {"bytes", bytes}}));
    made.ops.push_back(make_op("b/app", "wait", {}, {{"name", "page"}}));
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    made.ops.push_back(make_op("b/app", "get", {{"slot", 0}}, {{"name", "page"}}));
    const std::uint64_t fate = draw.below(4);  // nothing, killed, killed and started again, stopped
    const bool early = draw.chance(500);
    const auto start_all = [&] {
      for (std::int64_t i = 0; i < gets; ++i)
        made.ops.push_back(make_op("b/app", "get_start", {{"slot", i}}, {{"name", "page"}}));
    };
    if (early) start_all();
    if (draw.chance(500)) sleep(made, "b/app", drawn(draw, 0, 5 * us));
    if (fate == 3) made.ops.push_back(make_op("b/app", "pause", {}, {{"host", "a"}}));
    if (fate == 1 || fate == 2) made.ops.push_back(make_op("b/app", "crash", {}, {{"host", "a"}}));
    if (!early) start_all();
    if (draw.chance(300)) made.ops.push_back(make_op("b/app", "cancel", {{"slot", 0}}));
    if (fate == 2) {
      sleep(made, "b/app", drawn(draw, 0, 60 * ms));
      made.ops.push_back(make_op("b/app", "restart", {}, {{"host", "a"}}));
    }
    if (draw.chance(200)) {
      made.ops.push_back(make_op("b/closer", "wait", {}, {{"name", "page"}}));
      sleep(made, "b/closer", drawn(draw, 0, 200 * us));
      made.ops.push_back(make_op("b/closer", "close", {{"deadline_ns", drawn(draw, us, 50 * ms)}}, {{"host", "a"}}));
    }
    // Whoever was killed is reported after some ten milliseconds; whoever is stopped never is.
    for (std::int64_t i = 0; i < gets; ++i)
      made.ops.push_back(
          make_op("b/app", "await", {{"slot", i}, {"ns", fate == 3 ? drawn(draw, 10 * us, 100 * ms) : second}}));
    made.ops.push_back(make_op("b/app", "alloc", {{"slot", 20}, {"bytes", bytes}}));
    made.ops.push_back(make_op("b/app", "fill", {{"slot", 20}, {"seed", 9}}));
    if (fate == 2) {
      made.ops.push_back(make_op("b/app", "wait", {}, {{"name", "page-2"}}));
      made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", 21}, {"bytes", bytes}}));
      made.ops.push_back(make_op("b/app", "get", {{"slot", 21}}, {{"name", "page"}}));
      made.ops.push_back(make_op("b/app", "get", {{"slot", 21}}, {{"name", "page-2"}}));
    }
    if (fate == 3 && draw.chance(500)) {
      made.ops.push_back(make_op("b/app", "resume", {}, {{"host", "a"}}));
      sleep(made, "b/app", drawn(draw, 0, ms));
    }
    sleep(made, "b/app", drawn(draw, 0, 10 * ms));
    made.ops.push_back(make_op("b/app", "check", {{"slot", 20}}));
    if (draw.chance(600))
      made.ops.push_back(make_op("b/app", "shutdown", {{"deadline_ns", p.at("deadline_us") * 1000}}));
    if (draw.chance(200)) made.faults.push_back({"ucp.ep.fail", "b", draw.between(1, 3), 1, "fail", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.one_machine = true;
    how.may_stay_dead = {"a"};
    return start_fleet(w, how, what);
  }
};

class key_cache final : public scenario {
 public:
  std::string_view name() const noexcept override { return "key-cache"; }
  std::string_view text() const noexcept override {
    return "an owner offers registrations that come and go, whose keys may have the same bytes, to a reader whose "
           "cache is "
           "too small for all of them (TP-H17, TP-H18, PM-H61)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"rounds", "registrations that come and go", 6, 1, 20},
            {"keys", "keys that the reader keeps; 0: the seed says", 0, 0, 16}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "key-cache");
    // Large enough for a registration of its own.
    const std::int64_t bytes = 16 * granule, kept = 3;
    plan made;
    for (std::int64_t i = 1; i <= kept; ++i) offer(made, "a/owner", i, bytes, 60 + i, "kept-" + std::to_string(i));
    for (std::int64_t i = 0; i <= kept; ++i)
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", i}, {"bytes", bytes}}));
    made.ops.push_back(make_op("b/app", "alloc", {{"slot", 10}, {"bytes", 1}}));
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    for (std::int64_t round = 0; round < p.at("rounds"); ++round) {
      const std::string number = std::to_string(round);
      offer(made, "a/owner", 0, bytes, 40 + round, "page-" + number);
      made.ops.push_back(make_op("a/owner", "wait", {}, {{"name", "read-" + number}}));
      made.ops.push_back(make_op("a/owner", "free", {{"slot", 0}}));
      // It is unmapped at a sweep of its own.
      sleep(made, "a/owner", draw.chance(300) ? drawn(draw, 0, 100 * ms) : drawn(draw, 100 * ms, 400 * ms));
      made.ops.push_back(make_op("b/app", "wait", {}, {{"name", "page-" + number}}));
      if (round != 0) made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
      for (std::int64_t i = 1; i <= kept; ++i)
        if (draw.chance(600))
          made.ops.push_back(make_op("b/app", "get_start", {{"slot", i}}, {{"name", "kept-" + std::to_string(i)}}));
      made.ops.push_back(make_op("b/app", "get", {{"slot", 0}}, {{"name", "page-" + number}}));
      for (std::int64_t i = 1; i <= kept; ++i)
        made.ops.push_back(make_op("b/app", "await", {{"slot", i}, {"ns", second}}));
      made.ops.push_back(make_op("b/app", "publish", {{"slot", 10}}, {{"name", "read-" + number}}));
    }
    if (draw.chance(150)) made.faults.push_back({"ucp.get.error", "b", draw.between(1, 8), 1, "error", 0});
    if (draw.chance(150)) made.faults.push_back({"ucp.ep.fail", "b", draw.between(1, 8), 1, "fail", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.keys_max = static_cast<std::size_t>(p.at("keys"));
    if (how.keys_max == 0) how.keys_max = w.stream("key-cache").chance(400) ? 2 : 8;
    // Over tcp one GET at a time uses a key; through memory as many as there are.
    how.one_machine = w.stream("key-cache-lanes").chance(500);
    return start_fleet(w, how, what);
  }
};

class many_hosts final : public scenario {
 public:
  std::string_view name() const noexcept override { return "many-hosts"; }
  std::string_view text() const noexcept override {
    return "many hosts fetch from each other while they crash, return, stop, go on, and links break, heal and get slow "
           "(TP-T36)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"hosts", "hosts", 8, 2, 26},
            {"steps", "steps of each of them in one life", 12, 1, 10'000},
            {"trouble", "things that happen to hosts and links", 8, 0, 10'000}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "many-hosts");
    const std::vector<std::string> hosts = names(p);
    plan made;
    for (std::size_t h = 0; h < hosts.size(); ++h)
      for (std::int64_t life = 1; life <= lives_max; ++life) program(made, draw, hosts, h, life, p.at("steps"));
    for (std::int64_t i = 0; i < p.at("trouble"); ++i) {
      sleep(made, "a/fate", draw.chance(700) ? drawn(draw, 0, 500 * us) : drawn(draw, ms, 100 * ms));
      happens(made, draw, hosts);
    }
    for (std::uint64_t i = draw.below(4); i != 0; --i) disturb(made, draw, hosts);
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = names(p);
    return start_fleet(w, how, what);
  }

 private:
  static constexpr std::int64_t lives_max = 3, pages = 2;

  static std::vector<std::string> names(const parameters& p) {
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < p.at("hosts"); ++i) out.push_back(std::string(1, static_cast<char>('a' + i)));
    return out;
  }
  static std::string page_of(const std::string& host, std::int64_t life, std::int64_t which) {
    return host + "-" + std::to_string(life) + "-" + std::to_string(which);
  }
  static const std::string& other_than(random_stream& draw, const std::vector<std::string>& hosts, std::size_t self) {
    return hosts[(self + 1 + draw.below(hosts.size() - 1)) % hosts.size()];
  }

  // First it offers, then it fetches: nobody waits for what comes only after somebody waited for him.
  static void program(plan& made, random_stream& draw, const std::vector<std::string>& hosts, std::size_t self,
                      std::int64_t life, std::int64_t steps) {
    const std::string who = of_life(hosts[self] + "/app", life);
    for (std::int64_t i = 0; i < pages; ++i)
      offer(made, who, i, drawn(draw, 1, 3 * granule), 100 * static_cast<std::int64_t>(self) + 10 * life + i,
            page_of(hosts[self], life, i));
    for (std::int64_t i = 0; i < (life == 1 ? steps : steps / 2); ++i) step(made, draw, hosts, self, who);
    for (std::int64_t slot = 10; slot < 14; ++slot)
      made.ops.push_back(make_op(who, "await", {{"slot", slot}, {"ns", 500 * ms}}));
  }

  static void step(plan& made, random_stream& draw, const std::vector<std::string>& hosts, std::size_t self,
                   const std::string& who) {
    const std::int64_t slot = 10 + drawn(draw, 0, 3);
    const std::string& other = other_than(draw, hosts, self);
    // Mostly of the first life: of others only if they are there, or it would wait for a host to crash.
    const std::string page = page_of(other, 1, drawn(draw, 0, pages - 1));
    switch (draw.below(10)) {
      case 0:
      case 1: made.ops.push_back(make_op(who, "connect", {}, {{"host", other}})); [[fallthrough]];
      case 2:
      case 3:
        made.ops.push_back(make_op(who, "alloc", {{"slot", slot}, {"bytes", 3 * granule}}));
        made.ops.push_back(make_op(who, "get_start", {{"slot", slot}}, {{"name", page}}));
        break;
      case 4: made.ops.push_back(make_op(who, "cancel", {{"slot", slot}})); break;
      case 5:
      case 6:
        made.ops.push_back(make_op(who, "await", {{"slot", slot}, {"ns", drawn(draw, 10 * us, 100 * ms)}}));
        break;
      case 7:
        made.ops.push_back(make_op(who, "try_alloc", {{"slot", 20}, {"bytes", drawn(draw, 1, 8 * granule)}}));
        made.ops.push_back(make_op(who, "fill", {{"slot", 20}, {"seed", drawn(draw, 1, 99)}}));
        break;
      case 8:
        made.ops.push_back(make_op(who, "check", {{"slot", 20}}));
        if (draw.chance(200)) made.ops.push_back(make_op(who, "close", {{"deadline_ns", ms}}, {{"host", other}}));
        break;
      default: sleep(made, who, drawn(draw, 0, 300 * us)); break;
    }
  }

  // The first host does it to the others; nothing happens to itself.
  static void happens(plan& made, random_stream& draw, const std::vector<std::string>& hosts) {
    const std::string& whom = other_than(draw, hosts, 0);
    const std::string& to = hosts[draw.below(hosts.size())];
    switch (draw.below(7)) {
      case 0:
      case 1:
        made.ops.push_back(make_op("a/fate", "crash", {}, {{"host", whom}}));
        sleep(made, "a/fate", draw.chance(500) ? drawn(draw, 0, 200 * us) : drawn(draw, ms, 60 * ms));
        if (draw.chance(800)) made.ops.push_back(make_op("a/fate", "restart", {}, {{"host", whom}}));
        break;
      case 2:
        made.ops.push_back(make_op("a/fate", "pause", {}, {{"host", whom}}));
        sleep(made, "a/fate", drawn(draw, 0, 5 * ms));
        if (draw.chance(700)) made.ops.push_back(make_op("a/fate", "resume", {}, {{"host", whom}}));
        break;
      case 3:
      case 4:
        if (whom == to) break;
        made.ops.push_back(
            make_op("a/fate", "partition", {{"one_way", draw.chance(500) ? 1 : 0}}, {{"host", whom}, {"to", to}}));
        if (draw.chance(300)) break;
        sleep(made, "a/fate", draw.chance(800) ? drawn(draw, 0, 5 * ms) : drawn(draw, 10 * second, 20 * second));
        made.ops.push_back(make_op("a/fate", "heal", {}, {{"host", whom}, {"to", to}}));
        break;
      case 5:
        if (whom != to)
          made.ops.push_back(make_op("a/fate", "slow", {{"ns", drawn(draw, 0, 3 * ms)}}, {{"host", whom}, {"to", to}}));
        break;
      default: made.ops.push_back(make_op("a/fate", "resume", {}, {{"host", whom}})); break;
    }
  }

  static void disturb(plan& made, random_stream& draw, const std::vector<std::string>& hosts) {
    struct kind {
      const char* where;
      const char* what;
      std::int64_t value_max;
    };
    constexpr kind kinds[] = {
        {"fabric.delay", "delay", 500 * us}, {"fabric.delay", "loss", 0},     {"fabric.reset", "reset", 0},
        {"fabric.slow", "slow", 2 * ms},     {"ucp.ep.fail", "fail", 0},      {"ucp.get.error", "error", 0},
        {"host.crash", "restart", 50 * ms},  {"host.pause", "pause", 5 * ms}, {"nic.register", "delay", 500 * us},
        {"ucp.arm.busy", "busy", 0},         {"ucp.get.inline", "inline", 0},
    };
    const kind& k = kinds[draw.below(std::size(kinds))];
    made.faults.push_back({k.where, other_than(draw, hosts, 0), draw.between(1, 40), draw.between(1, 2), k.what,
                           k.value_max == 0 ? 0 : drawn(draw, 1, k.value_max)});
  }
};

}  // namespace

void add_trouble_scenarios() {
  add_scenario(std::make_unique<crash_and_restart>());
  add_scenario(std::make_unique<losses_told>());
  add_scenario(std::make_unique<partitioned>());
  add_scenario(std::make_unique<paused>());
  add_scenario(std::make_unique<shared_memory>());
  add_scenario(std::make_unique<key_cache>());
  add_scenario(std::make_unique<many_hosts>());
}

}  // namespace holdfast::sim
