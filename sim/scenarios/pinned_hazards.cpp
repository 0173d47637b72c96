// Scenarios of hazards of pinned memory that the other scenarios have no room for: limits of a device, the age of arenas,
// and requests that no ledger can hold.
#include <sim/scenarios/base_stage.hpp>
#include <sim/scenarios/fleet.hpp>
#include <sim/scenarios/scripted_stage.hpp>

#include <holdfast/base/capacity_ledger.hpp>

#include <sim/kernel/random.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;

class device_limit final : public scenario {
 public:
  std::string_view name() const noexcept override { return "device-limit"; }
  std::string_view text() const noexcept override {
    return "requests around the longest registration that the device takes; what is longer is refused and leaves "
           "nothing "
           "behind (PM-H17)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"threads", "fibers that allocate", 2, 1, 8},
            {"steps", "allocations of each", 3, 1, 1000},
            {"limit_granules", "longest registration, in granules of 4096", 10, 8, 64}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, name());
    plan made;
    for (std::int64_t t = 0; t < p.at("threads"); ++t) {
      const std::string who = "a/app-" + std::to_string(t);
      for (std::int64_t i = 0; i < p.at("steps"); ++i) {
        const std::int64_t limit = p.at("limit_granules");
        const auto bytes = static_cast<std::int64_t>(draw.between(static_cast<std::uint64_t>((limit - 2) * granule),
                                                                  static_cast<std::uint64_t>((limit + 2) * granule)));
        made.ops.push_back(make_op(who, "alloc_start", {{"slot", t}, {"bytes", bytes}}));
        if (draw.chance(250)) made.ops.push_back(make_op(who, "cancel", {{"slot", t}}));
        made.ops.push_back(make_op(who, "await", {{"slot", t}}));
        made.ops.push_back(make_op(who, "fill", {{"slot", t}, {"seed", t * 16 + i}}));
        made.ops.push_back(make_op(who, "check", {{"slot", t}}));
        made.ops.push_back(make_op(who, "free", {{"slot", t}}));
      }
    }
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    scripted_settings how;
    how.device.declared.get_works = false;
    how.device.declared.max_region_bytes = static_cast<std::size_t>(p.at("limit_granules") * granule);
    how.pool.max_arena_bytes = 8 * granule;
    return start_scripted(w, how, what);
  }
};

class arenas_come_and_go final : public scenario {
 public:
  std::string_view name() const noexcept override { return "arenas-come-and-go"; }
  std::string_view text() const noexcept override {
    return "an arena is empty, used again and empty again, or was adopted and never used, while sweeps look at its "
           "age; the "
           "budget holds little more, and unmaps may be refused for long (PM-H23, PM-H25, PM-H65, PM-H69, PM-H92)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"rounds", "times that an arena comes or is used again", 4, 1, 1000},
            {"after_us", "how long an arena may idle, in microseconds", 24'000, 1, 1'000'000}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, name());
    plan made;
    const std::string who = "a/app";
    const auto step = [&](std::string what, std::map<std::string, std::int64_t> numbers = {}) {
      made.ops.push_back(make_op(who, std::move(what), std::move(numbers)));
    };
    const auto after_ns = static_cast<std::uint64_t>(p.at("after_us") * 1000);
    for (std::int64_t i = 0; i < p.at("rounds"); ++i) {
      const bool dedicated = draw.chance(250);
      const auto bytes =
          static_cast<std::int64_t>(dedicated ? draw.between(8 * granule, 9 * granule) : draw.between(1, 4 * granule));
      const std::int64_t slot = i % 2;
      if (draw.chance(350)) {
        step("alloc_start", {{"slot", slot}, {"bytes", bytes}});
        step("cancel", {{"slot", slot}});
        step("await", {{"slot", slot}});
      } else {
        step("alloc", {{"slot", slot}, {"bytes", bytes}});
        if (draw.chance(300)) step("sleep", {{"ns", static_cast<std::int64_t>(draw.below(after_ns))}});
      }
      // Two at once are more than one arena has room for.
      if (draw.chance(400)) continue;
      step("free", {{"slot", 0}});
      step("free", {{"slot", 1}});
      for (std::uint64_t sweeps = draw.below(3); sweeps != 0; --sweeps) {
        step("sleep", {{"ns", static_cast<std::int64_t>(draw.below(draw.chance(300) ? 5 * after_ns / 2 : after_ns))}});
        step("reclaim");
      }
    }
    if (draw.chance(400))
      made.faults.push_back({"scripted.unmap", "a", draw.between(1, 3), draw.between(1, 8), "refused", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    scripted_settings how;
    how.device.declared.get_works = false;
    how.pool.arena_reclaim_after_ns = p.at("after_us") * 1000;
    how.pool.retain_arena_bytes = 0;
    how.pool.registered_bytes_budget = 12 * granule;
    how.pool.unmap_timeout_ns = 100'000;
    how.pool.unmap_retry_max = 2;
    return start_scripted(w, how, what);
  }
};

class many_arenas final : public scenario {
 public:
  std::string_view name() const noexcept override { return "many-arenas"; }
  std::string_view text() const noexcept override {
    return "a pool grows by more arenas than a size has bits, each full when the next is asked for; then some go and "
           "smaller "
           "requests come (PM-H20)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"arenas", "the most arenas, each taken by one request", 60, 1, 60},
            {"granules", "ceiling of an arena, in granules of 4096", 3, 2, 8}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, name());
    plan made;
    const std::int64_t most = p.at("arenas");
    // Mostly few: every one costs a registration.
    const std::int64_t count =
        draw.chance(300)
            ? most
            : static_cast<std::int64_t>(draw.between(1, static_cast<std::uint64_t>(std::min<std::int64_t>(most, 8))));
    const auto step = [&](std::string what, std::int64_t slot, std::int64_t bytes = 0) {
      std::map<std::string, std::int64_t> numbers{{"slot", slot}};
      if (bytes != 0) numbers["bytes"] = bytes;
      made.ops.push_back(make_op("a/app", std::move(what), std::move(numbers)));
    };
    for (std::int64_t slot = 0; slot < count; ++slot) step("alloc", slot, p.at("granules") * granule);
    for (std::int64_t i = 0; i < 3; ++i) {
      if (draw.chance(300)) step("free", static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(count))));
      step("alloc", 60 + i,
           static_cast<std::int64_t>(draw.between(1, static_cast<std::uint64_t>(p.at("granules") * granule))));
    }
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    scripted_settings how;
    how.device.declared.get_works = false;
    how.pool.initial_arena_bytes = 2 * granule;
    how.pool.max_arena_bytes = static_cast<std::uint64_t>(p.at("granules") * granule);
    how.pool.dedicated_arena_min = static_cast<std::uint64_t>((p.at("granules") + 1) * granule);
    how.pool.registered_bytes_budget = static_cast<std::uint64_t>(64 * p.at("granules") * granule);
    return start_scripted(w, how, what);
  }
};

/// What a request near the end of 64 bits does to a ledger that has something out.
class huge_requests final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-ledger-huge";
  static constexpr std::string_view scenario_text =
      "fibers ask one ledger for more than 64 bits can count, with something out (PM-H11)";

  explicit huge_requests(world& w) : base_stage(w, "PM-I8") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t, std::int64_t, bool) {
    const auto bytes = static_cast<std::int64_t>(random.between(1, 6));
    return {who, random.chance(500) ? "reserve" : "reserve_huge", {{"bytes", bytes}}, {}};
  }

  std::optional<std::string> inspect(const op& step) const override {
    if (step.what != "reserve" && step.what != "reserve_huge")
      return "there is no such step; there are reserve, reserve_huge";
    if (const std::int64_t bytes = step.number("bytes"); bytes < 1 || bytes > 6) return "bytes is not in 1..6";
    return std::nullopt;
  }

  void open(platform::host&) override { ledger_.make(1, ceiling, log()); }

  step_result run(const std::string& who, const op& step) override {
    const auto bytes = static_cast<std::uint64_t>(step.number("bytes"));
    if (step.what == "reserve") {
      lane_of(who).drop();
      auto reserved = ledger_->reserve(bytes);
      if (!reserved) return {false, static_cast<std::uint64_t>(reserved.error().code)};
      lane_of(who) = std::move(*reserved);
      return {};
    }
    const auto refused = ledger_->reserve(std::numeric_limits<std::uint64_t>::max() - bytes + 1);
    expect(!refused, "a request that no ceiling can hold is refused");
    return {false, static_cast<std::uint64_t>(refused ? error_code{} : refused.error().code)};
  }

  void lane_ended(const std::string& who) override {
    lane_of(who).drop();
    subject_of(who).destroy();
  }

  void close() override {
    expect(ledger_->snapshot().charged_bytes == 0, "everything was given back");
    ledger_.destroy();
  }

 private:
  static constexpr std::uint64_t ceiling = 10;
  subject<reservation>& subject_of(const std::string& who) {
    kernel_scope kernel;
    return lanes_[who];
  }
  reservation& lane_of(const std::string& who) {
    subject<reservation>& mine = subject_of(who);
    if (!mine) mine.make();
    return *mine;
  }

  subject<capacity_ledger> ledger_;
  std::map<std::string, subject<reservation>> lanes_;
};

}  // namespace

void add_pinned_hazards() {
  add_scenario(std::make_unique<device_limit>());
  add_scenario(std::make_unique<arenas_come_and_go>());
  add_scenario(std::make_unique<many_arenas>());
  add_scenario(std::make_unique<base_scenario<huge_requests>>());
}

}  // namespace holdfast::sim
