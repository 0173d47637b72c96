// Scenarios of hosts with a card for one-sided transfers: the owner of memory takes no part in a read, so his silence,
// his stop and his end mean something else than over the lanes that his own progress serves.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;
constexpr std::int64_t us = 1'000, ms = 1'000'000, second = 1'000'000'000;

class rdma final : public scenario {
 public:
  std::string_view name() const noexcept override { return "rdma"; }
  std::string_view text() const noexcept override {
    return "GETs that queue pairs carry: given up, while the owner gives its memory back, stops, dies and returns, "
           "closes or "
           "revokes, and while the way between them breaks";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs in flight", 3, 1, 16},
            {"rounds", "times that something happens", 2, 1, 20},
            {"cards", "2: both have a card; 1: the reader alone; 0: the seed says", 0, 0, 2}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, name());
    // Large enough for a registration of its own, which goes when the buffer does.
    const std::int64_t gets = p.at("gets"), bytes = 16 * granule;
    plan made;
    const auto add = [&made](const std::string& who, const std::string& what,
                             std::map<std::string, std::int64_t> numbers = {},
                             std::map<std::string, std::string> words = {}) {
      made.ops.push_back(make_op(who, what, std::move(numbers), std::move(words)));
    };
    const auto drawn = [&draw](std::int64_t low, std::int64_t high) {
      return static_cast<std::int64_t>(draw.between(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)));
    };
    const auto sleep = [&](const std::string& who, std::int64_t longest_ns) {
      add(who, "sleep", {{"ns", drawn(0, longest_ns)}});
    };
    const auto offer = [&](const std::string& who, std::int64_t slot, const std::string& page) {
      add(who, "alloc", {{"slot", slot}, {"bytes", bytes}});
      add(who, "fill", {{"slot", slot}, {"seed", 40 + slot}});
      add(who, "publish", {{"slot", slot}}, {{"name", page}});
    };
    offer("a/owner", 0, "page");
    offer("a/owner", 1, "given-back");
    offer("a/owner@2", 0, "page-2");
    for (std::int64_t i = 0; i < gets; ++i) add("b/app", "alloc", {{"slot", i}, {"bytes", bytes}});
    add("b/app", "wait", {}, {{"name", "given-back"}});
    add("b/app", "connect", {}, {{"host", "a"}});
    add("b/app", "get", {{"slot", 0}}, {{"name", "page"}});
    for (std::int64_t round = 0; round < p.at("rounds"); ++round) {
      const bool early = draw.chance(700);
      const auto start_all = [&] {
        for (std::int64_t i = 0; i < gets; ++i) {
          const bool given_back = draw.chance(300);
          add("b/app", "get_start", {{"slot", i}, {"given_back", given_back ? 1 : 0}},
              {{"name", given_back ? "given-back" : "page"}});
        }
      };
      if (early) start_all();
      if (draw.chance(600)) sleep("b/app", draw.chance(500) ? 10 * us : 60 * us);
      const std::uint64_t what = draw.below(7);
      switch (what) {
        case 0: add("b/app", "cancel", {{"slot", drawn(0, gets - 1)}}); break;
        case 1: add("b/app", "close", {{"deadline_ns", drawn(us, 2 * ms)}}, {{"host", "a"}}); break;
        case 2: add("b/app", "pause", {}, {{"host", "a"}}); break;
        case 3:
          add("b/app", "crash", {}, {{"host", "a"}});
          sleep("b/app", draw.chance(500) ? 200 * us : 100 * ms);
          add("b/app", "restart", {}, {{"host", "a"}});
          break;
        case 4: {
          const std::int64_t one_way = draw.chance(500) ? 1 : 0;
          const bool from_owner = draw.chance(500);
          add("b/app", "partition", {{"one_way", one_way}},
              {{"host", from_owner ? "a" : "b"}, {"to", from_owner ? "b" : "a"}});
          break;
        }
        case 5: add("b/app", draw.chance(500) ? "revoke" : "close", {}, {{"host", "a"}}); break;
        default: break;
      }
      if (!early) start_all();
      sleep("b/app", draw.chance(800) ? ms : second);
      for (std::int64_t i = 0; i < gets; ++i) add("b/app", "await", {{"slot", i}, {"ns", drawn(10 * us, 800 * ms)}});
      // What those who gave up left in flight must not fall into what is granted next.
      add("b/app", "alloc", {{"slot", 20}, {"bytes", 2 * granule}});
      add("b/app", "fill", {{"slot", 20}, {"seed", 9 + round}});
      if (what == 2) add("b/app", "resume", {}, {{"host", "a"}});
      if (what == 4) add("b/app", "heal", {}, {{"host", "a"}, {"to", "b"}});
      sleep("b/app", 2 * ms);
      add("b/app", "check", {{"slot", 20}});
      if (what == 3) add("b/app", "wait", {}, {{"name", "page-2"}});
      add("b/app", "connect", {}, {{"host", "a"}});
      for (std::int64_t i = 0; i < gets; ++i) add("b/app", "alloc", {{"slot", i}, {"bytes", bytes}});
      add("b/app", "get", {{"slot", 0}}, {{"name", what == 3 ? "page-2" : "page"}});
    }
    // The memory goes back under readers that know its key.
    add("a/owner", "sleep", {{"ns", drawn(0, 400 * us)}});
    add("a/owner", "free", {{"slot", 1}});
    // And an owner that reads, over the same pair.
    if (draw.chance(400)) {
      add("b/app", "alloc", {{"slot", 40}, {"bytes", bytes}});
      add("b/app", "fill", {{"slot", 40}, {"seed", 77}});
      add("b/app", "publish", {{"slot", 40}}, {{"name", "page-b"}});
      add("a/reader", "wait", {}, {{"name", "page-b"}});
      add("a/reader", "alloc", {{"slot", 50}, {"bytes", bytes}});
      add("a/reader", "connect", {}, {{"host", "b"}});
      add("a/reader", "get", {{"slot", 50}}, {{"name", "page-b"}});
    }
    if (draw.chance(400)) add("b/app", "shutdown", {{"deadline_ns", drawn(10 * us, 5 * ms)}});
    if (draw.chance(200))
      made.faults.push_back({"fabric.delay", "", draw.between(1, 30), draw.between(1, 3), "delay", 300 * us});
    if (draw.chance(150))
      made.faults.push_back({"ucp.ep.fail", draw.chance(500) ? "a" : "b", draw.between(1, 4), 1, "fail", 0});
    if (draw.chance(150)) made.faults.push_back({"ucp.get.error", "b", draw.between(1, 8), 1, "error", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.with_card = {"b"};
    if (p.at("cards") == 2 || (p.at("cards") == 0 && !w.stream("rdma-cards").chance(150))) how.with_card.push_back("a");
    how.may_stay_dead = {"a"};
    // Room for what is being read into, and for one more: what is in flight counts.
    how.pool.registered_bytes_budget = 200 * granule;
    return start_fleet(w, how, what);
  }
};

}  // namespace

void add_rdma_scenarios() { add_scenario(std::make_unique<rdma>()); }

}  // namespace holdfast::sim
