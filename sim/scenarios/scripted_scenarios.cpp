// Scenarios of pinned memory over a device that gives any answer of the contract, at any time.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>
#include <sim/scenarios/scripted_stage.hpp>

#include <sim/kernel/random.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;

struct drawing {
  plan& made;
  random_stream& draw;
  const parameters& p;

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(bound)));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(std::uint64_t permille) { return draw.chance(permille); }
  void step(const std::string& who, std::string what, std::map<std::string, std::int64_t> numbers = {}) {
    made.ops.push_back(make_op(who, std::move(what), std::move(numbers)));
  }
  void maybe_sleep(const std::string& who, std::uint64_t permille, std::int64_t ns_max) {
    if (chance(permille)) step(who, "sleep", {{"ns", below(ns_max)}});
  }
  /// At `where`, from the nth to some more passes, one of `kinds`.
  template <std::size_t Count>
  void fault_at(const char* where, const char* const (&kinds)[Count], std::int64_t nth_max, std::int64_t ns_max) {
    made.faults.push_back({where, "a", static_cast<std::uint64_t>(between(1, nth_max)),
                           static_cast<std::uint64_t>(between(1, 3)), kinds[draw.below(Count)], below(ns_max)});
  }
};

struct load {
  std::uint64_t dedicated = 200;  // permille
  std::uint64_t cancelled = 250;
  std::uint64_t fetched = 0;
  std::uint64_t swept = 0;
  std::uint64_t aged = 0;  // sleeps longer than an arena may idle
};

// Allocates, fills, fetches, checks and frees in three slots from `first` on.
void use(drawing& d, const std::string& who, std::int64_t first, std::int64_t steps, const load& how) {
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t slot = first + d.below(3);
    const std::int64_t bytes =
        d.chance(how.dedicated) ? d.between(8 * granule, 10 * granule) : d.between(1, 2 * granule);
    if (d.chance(how.cancelled)) {
      d.step(who, "alloc_start", {{"slot", slot}, {"bytes", bytes}});
      d.maybe_sleep(who, 300, 40'000);
      d.step(d.chance(500) ? who : who + "-canceller", "cancel", {{"slot", slot}});
      d.step(who, "await", {{"slot", slot}});
    } else {
      d.step(who, d.chance(250) ? "try_alloc" : "alloc", {{"slot", slot}, {"bytes", bytes}});
    }
    d.step(who, "fill", {{"slot", slot}, {"seed", d.below(250)}});
    if (d.chance(how.fetched)) {
      d.step(who, "get_start", {{"slot", slot}, {"seed", d.below(250)}});
      d.maybe_sleep(who, 400, 60'000);
      if (d.chance(400)) d.step(d.chance(500) ? who : who + "-canceller", "cancel", {{"slot", slot}});
      d.step(who, "await", {{"slot", slot}});
    }
    d.maybe_sleep(who, 200, 50'000);
    const std::int64_t other = first + d.below(3);
    if (d.chance(150)) d.step(who, "reference", {{"slot", other}});
    d.step(who, "check", {{"slot", other}});
    if (d.chance(600)) d.step(who, "free", {{"slot", other}});
    if (d.chance(how.swept)) d.step(d.chance(500) ? who : "a/sweeper", "reclaim");
    if (d.chance(how.aged)) d.step(who, "sleep", {{"ns", d.between(5'000'000, 250'000'000)}});
  }
}

void use_by_threads(drawing& d, const load& how) {
  for (std::int64_t t = 0; t < d.p.at("threads"); ++t)
    use(d, "a/app-" + std::to_string(t), t * 3, d.p.at("steps"), how);
}

// Somebody ends it while the others go on.
void close_early(drawing& d, std::int64_t sleep_ns_max, std::int64_t deadline_ns_max, std::uint64_t release_permille) {
  d.maybe_sleep("a/closer", 800, sleep_ns_max);
  d.step("a/closer", "shutdown", {{"deadline_ns", d.below(deadline_ns_max)}});
  if (d.chance(300)) d.step("a/closer", "snapshot");
  d.maybe_sleep("a/closer", 300, deadline_ns_max);
  if (d.chance(release_permille)) d.step("a/closer", "release");
}

// An answer that never comes, or not by itself: then there must be deadlines.
bool leaves_somebody_waiting(const fault& planned) {
  if (!planned.where.starts_with("scripted.")) return false;
  for (const std::string_view kind : {"never", "silent", "hang", "indeterminate", "orphaned_never"})
    if (planned.what == kind) return true;
  return false;
}

using draw_plan = void (*)(drawing&);
using choose_settings = void (*)(const parameters&, random_stream&, scripted_settings&);

struct description {
  std::string_view name, text;
  draw_plan plan_of;
  choose_settings adjust = nullptr;
  bool is_small = false;
  std::vector<parameter> own = {};
};

class scripted_scenario final : public scenario {
 public:
  explicit scripted_scenario(description d) : d_(std::move(d)) {}
  std::string_view name() const noexcept override { return d_.name; }
  std::string_view text() const noexcept override { return d_.text; }
  bool small() const noexcept override { return d_.is_small; }
  std::vector<parameter> describe_parameters() const override {
    std::vector<parameter> all = d_.own;
    if (d_.is_small) return all;
    all.push_back({"threads", "fibers that allocate", 2, 1, 8});
    all.push_back({"steps", "allocations of each", 2, 1, 1000});
    all.push_back({"refuses", "whether the device can refuse an unmap; 2: the seed says", 2, 0, 2});
    all.push_back({"fence", "whether the end of the worker ends its writes; 2: the seed says, mostly yes", 2, 0, 2});
    return all;
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, d_.name);
    plan made;
    drawing d{made, draw, p};
    d_.plan_of(d);
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    scripted_settings how;
    auto draw = random_stream::derive(w.settings().seed, "scripted device");
    if (d_.is_small) {
      how = small_stage();
      if (std::ranges::any_of(what.faults, &leaves_somebody_waiting)) {
        how.shutdown_ns = how.teardown_ns = 1'000'000;
        how.patience_ns = 10'000'000;
      }
    } else {
      const auto decide = [&](const char* key, std::uint64_t permille) {
        const bool drawn = draw.chance(permille);
        return p.at(key) == 2 ? drawn : p.at(key) == 1;
      };
      how.device.declared.can_refuse_unmap = decide("refuses", 700);
      how.device.declared.destroy_is_fence = decide("fence", 850);
      how.device.declared.unmap_verdict_reported = draw.chance(700);
      how.executor_threads = draw.chance(250) ? 2 : 1;
    }
    if (d_.adjust != nullptr) d_.adjust(p, draw, how);
    return start_scripted(w, how, what);
  }

 private:
  const description d_;
};

void without_gets(const parameters&, random_stream&, scripted_settings& how) { how.device.declared.get_works = false; }

// Unmaps ------------------------------------------------------------------------------------------------------

void plan_unmap_refused(drawing& d) {
  use_by_threads(d, {.dedicated = 400, .cancelled = 400, .swept = 300, .aged = 100});
  static constexpr const char* kinds[] = {"refused"};
  for (std::int64_t i = 0; i < 2; ++i) d.fault_at("scripted.unmap", kinds, 4, 20'000);
  if (d.chance(600)) close_early(d, 80'000, 200'000, 300);
}

void plan_unmap_late(drawing& d) {
  use_by_threads(d, {.dedicated = 400, .cancelled = 400, .swept = 300, .aged = 100});
  static constexpr const char* kinds[] = {"late"};
  static constexpr const char* ends[] = {"slow", "silent"};
  for (std::int64_t i = 0; i < 3; ++i) d.fault_at("scripted.unmap", kinds, 4, d.chance(300) ? 3'000'000 : 300'000);
  if (d.chance(500)) d.fault_at("scripted.teardown", ends, 1, 200'000);
  if (d.chance(700)) close_early(d, 80'000, 200'000, 500);
}

void plan_unmap_never(drawing& d) {
  use_by_threads(d, {.dedicated = 400, .cancelled = 400, .swept = 300, .aged = 100});
  static constexpr const char* kinds[] = {"never"};
  static constexpr const char* ends[] = {"silent", "hang", "slow"};
  for (std::int64_t i = 0; i < 2; ++i) d.fault_at("scripted.unmap", kinds, 4, 1);
  if (d.chance(400)) d.fault_at("scripted.teardown", ends, 1, 200'000);
  if (d.chance(600)) close_early(d, 80'000, 200'000, 400);
}

void plan_unmap_lies(drawing& d) {
  use_by_threads(d, {.dedicated = 400, .cancelled = 400, .swept = 300, .aged = 100});
  static constexpr const char* kinds[] = {"lie", "unknown_done", "unknown_kept"};
  for (std::int64_t i = 0; i < 3; ++i) d.fault_at("scripted.unmap", kinds, 4, 100'000);
  if (d.chance(600)) close_early(d, 80'000, 200'000, 400);
}

void plan_reclaim_churn(drawing& d) {
  use_by_threads(d, {.dedicated = 150, .cancelled = 150, .swept = 300, .aged = 400});
  static constexpr const char* unmaps[] = {"late", "refused", "unknown_done", "unknown_kept", "lie", "never"};
  if (d.chance(500)) d.fault_at("scripted.unmap", unmaps, 4, d.chance(300) ? 100'000'000 : 300'000);
  if (d.chance(150)) d.made.faults.push_back({"heap", "a", static_cast<std::uint64_t>(d.between(1, 60)), 1, "fail", 0});
  if (d.chance(200)) d.step("a/sweeper", "snapshot");
  if (d.chance(500)) close_early(d, 60'000'000, 200'000, 300);
}

void settings_reclaim_churn(const parameters& p, random_stream& draw, scripted_settings& how) {
  without_gets(p, draw, how);
  how.pool.arena_reclaim_after_ns =
      draw.chance(200) ? 0 : static_cast<std::int64_t>(draw.between(1'000'000, 60'000'000));
  how.pool.retain_arena_bytes = draw.below(3) * 4 * granule;
  how.pool.unmap_timeout_ns = static_cast<std::int64_t>(draw.between(20'000, 30'000'000));
  how.pool.unmap_retry_max = static_cast<std::uint32_t>(draw.below(4));
}

void plan_pressure(drawing& d) {
  for (std::int64_t t = 0; t < d.p.at("threads"); ++t) {
    const std::string who = "a/app-" + std::to_string(t);
    for (std::int64_t i = 0; i < d.p.at("steps") + 1; ++i) {
      // A pooled arena or two that fell empty stand in the way of a large one, and the other way round.
      const std::int64_t bytes = d.chance(500) ? d.between(8 * granule, 11 * granule) : d.between(1, 4 * granule);
      d.step(who, "alloc_start", {{"slot", t}, {"bytes", bytes}});
      if (d.chance(200)) {
        d.maybe_sleep(who, 500, 60'000);
        d.step(d.chance(500) ? who : who + "-canceller", "cancel", {{"slot", t}});
      }
      d.step(who, "await", {{"slot", t}});
      d.step(who, "fill", {{"slot", t}, {"seed", t * 16 + i}});
      d.maybe_sleep(who, 300, 50'000);
      d.step(who, "check", {{"slot", t}});
      if (d.chance(850)) d.step(who, "free", {{"slot", t}});
    }
  }
  static constexpr const char* unmaps[] = {"late", "refused", "unknown_done", "unknown_kept", "lie", "never"};
  if (d.chance(600)) d.fault_at("scripted.unmap", unmaps, 3, d.chance(300) ? 2'000'000 : 200'000);
  if (d.chance(200))
    d.made.faults.push_back({"suspension", "a", static_cast<std::uint64_t>(d.between(1, 8)), 1, "cancel", 0});
  if (d.chance(150)) d.made.faults.push_back({"heap", "a", static_cast<std::uint64_t>(d.between(1, 60)), 1, "fail", 0});
  if (d.chance(400)) close_early(d, 300'000, 200'000, 300);
}

void settings_pressure(const parameters& p, random_stream& draw, scripted_settings& how) {
  without_gets(p, draw, how);
  how.pool.registered_bytes_budget = draw.between(12, 20) * granule;
  how.pool.unmap_timeout_ns = static_cast<std::int64_t>(draw.between(5'000, 500'000));
  how.pool.reclaim_on_pressure = !draw.chance(100);
}

// Growth ------------------------------------------------------------------------------------------------------

void plan_growth_cancelled(drawing& d) {
  static constexpr const char* kinds[] = {"delayed", "refused", "never", "silent", "short", "larger"};
  const std::size_t kind = d.draw.below(std::size(kinds));
  const bool stuck = kind == 2 || kind == 3;
  const std::int64_t bytes = d.chance(200) ? d.between(8 * granule, 9 * granule) : d.between(1, 3 * granule);
  for (std::int64_t i = 0; i < d.p.at("steps"); ++i) {
    d.step("a/app-0", "alloc_start", {{"slot", 0}, {"bytes", bytes}});
    d.maybe_sleep("a/app-0", 500, 60'000);
    d.step(d.chance(500) ? "a/app-0" : "a/canceller", "cancel", {{"slot", 0}});
    d.step("a/app-0", "await", {{"slot", 0}});
    // The second miss waits for the first one's answer, or is served by it.
    for (std::int64_t t = 1; t < d.p.at("threads"); ++t) {
      const std::string who = "a/app-" + std::to_string(t);
      d.maybe_sleep(who, 300, 30'000);
      d.step(who, "alloc", {{"slot", t}, {"bytes", d.chance(800) ? bytes : d.between(1, 6 * granule)}});
      d.step(who, "fill", {{"slot", t}, {"seed", i * 8 + t}});
      d.step(who, "check", {{"slot", t}});
      d.step(who, "free", {{"slot", t}});
    }
    d.step("a/app-0", "free", {{"slot", 0}});
  }
  d.made.faults.push_back(
      {"scripted.map", "a", static_cast<std::uint64_t>(d.between(1, 2)), 1, kinds[kind], d.below(200'000)});
  if (d.chance(400))
    d.made.faults.push_back({"suspension", "a", static_cast<std::uint64_t>(d.between(1, 8)), 1, "cancel", 0});
  if (d.chance(200)) d.made.faults.push_back({"heap", "a", static_cast<std::uint64_t>(d.between(1, 30)), 1, "fail", 0});
  if (stuck || d.chance(300)) close_early(d, 150'000, 200'000, 300);
}

// The end -----------------------------------------------------------------------------------------------------

void plan_shutdown_scripted(drawing& d) {
  use_by_threads(d, {.dedicated = 300, .cancelled = 250, .fetched = 500});
  static constexpr const char* maps[] = {"larger", "short", "refused", "delayed", "never", "silent"};
  static constexpr const char* unmaps[] = {"late", "refused", "unknown_done", "unknown_kept", "lie", "never"};
  static constexpr const char* gets[] = {"inline",        "failed",      "refused",         "never",
                                         "indeterminate", "orphaned_ok", "orphaned_failed", "orphaned_never"};
  static constexpr const char* ends[] = {"slow", "hang", "silent"};
  if (d.chance(600)) d.fault_at("scripted.map", maps, 3, 300'000);
  if (d.chance(700)) d.fault_at("scripted.unmap", unmaps, 3, 300'000);
  if (d.chance(300)) d.fault_at("scripted.unmap", unmaps, 4, 300'000);
  if (d.chance(700)) d.fault_at("scripted.get", gets, 3, 300'000);
  if (d.chance(300)) d.fault_at("scripted.teardown", ends, 1, 200'000);
  if (d.chance(150)) d.made.faults.push_back({"heap", "a", static_cast<std::uint64_t>(d.between(1, 60)), 1, "fail", 0});
  if (d.chance(150))
    d.made.faults.push_back({"suspension", "a", static_cast<std::uint64_t>(d.between(1, 10)), 1, "cancel", 0});
  if (d.chance(50)) {
    // Nobody shuts it down, so nothing may be stuck that somebody waits for.
    std::erase_if(d.made.faults, [](const fault& planned) { return planned.where != "scripted.unmap"; });
    return d.step("a/closer", "abandon");
  }
  // Whoever waits for what never comes is told by the end.
  close_early(d, 150'000, 300'000, 1000);
}

void plan_threads_at_the_edge(drawing& d) {
  for (std::int64_t t = 0; t < d.p.at("threads"); ++t) {
    const std::string who = "a/app-" + std::to_string(t);
    for (std::int64_t i = 0; i < d.p.at("steps"); ++i) {
      // Two of these fit beside each other, three do not.
      const std::int64_t bytes = d.chance(700) ? d.between(8 * granule, 11 * granule) : d.between(1, 4 * granule);
      d.step(who, "alloc_start", {{"slot", t}, {"bytes", bytes}});
      if (d.chance(300)) d.step(who, "cancel", {{"slot", t}});
      d.step(who, "await", {{"slot", t}});
      d.step(who, "fill", {{"slot", t}, {"seed", t * 16 + i}});
      d.maybe_sleep(who, 400, 50'000);
      d.step(who, "check", {{"slot", t}});
      d.step(who, "free", {{"slot", t}});
    }
  }
  static constexpr const char* maps[] = {"larger", "short", "refused", "delayed"};
  static constexpr const char* unmaps[] = {"late", "refused", "unknown_done", "unknown_kept", "lie", "never"};
  if (d.chance(500)) d.fault_at("scripted.map", maps, 4, 100'000);
  if (d.chance(500)) d.fault_at("scripted.unmap", unmaps, 3, 100'000);
  if (d.chance(200))
    d.made.faults.push_back({"pages.allocate", "a", static_cast<std::uint64_t>(d.between(1, 4)), 1, "refuse", 0});
  if (d.chance(200)) d.made.faults.push_back({"heap", "a", static_cast<std::uint64_t>(d.between(1, 40)), 1, "fail", 0});
  if (d.chance(300)) d.step("a/looker", "snapshot");
}

void settings_at_the_edge(const parameters& p, random_stream& draw, scripted_settings& how) {
  without_gets(p, draw, how);
  how.pool.unmap_timeout_ns = 200'000;
  how.pool.registered_bytes_budget = 24 * granule;
}

// Transfers ---------------------------------------------------------------------------------------------------

void plan_get_exits(drawing& d) {
  static constexpr const char* kinds[] = {"inline",        "failed",      "refused",         "never",
                                          "indeterminate", "orphaned_ok", "orphaned_failed", "orphaned_never"};
  for (std::int64_t t = 0; t < d.p.at("threads"); ++t) {
    const std::string who = "a/app-" + std::to_string(t);
    for (std::int64_t i = 0; i < d.p.at("steps"); ++i) {
      const std::int64_t slot = t * 3 + i % 3;
      d.step(who, "alloc", {{"slot", slot}, {"bytes", d.between(1, 2 * granule)}});
      d.step(who, "get_start", {{"slot", slot}, {"seed", d.below(250)}, {"stale", d.chance(50) ? 1 : 0}});
      d.maybe_sleep(who, 500, 60'000);
      if (d.chance(350)) d.step(d.chance(500) ? who : who + "-canceller", "cancel", {{"slot", slot}});
      d.step(who, "await", {{"slot", slot}});
      d.step(who, "check", {{"slot", slot}});
      if (d.chance(500)) d.step(who, "free", {{"slot", slot}});
    }
  }
  // Whoever wants the room meanwhile: small, so that it falls where a transfer still writes, if that were free.
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t slot = 40 + i;
    const bool tries = d.chance(600);
    d.step("a/tenant", tries ? "try_alloc" : "alloc", {{"slot", slot}, {"bytes", d.between(1, granule)}});
    d.step("a/tenant", "fill", {{"slot", slot}, {"seed", 100 + i}});
    d.maybe_sleep("a/tenant", 500, 60'000);
  }
  for (std::int64_t i = 0; i < 4; ++i) {
    d.step("a/tenant", "check", {{"slot", 40 + i}});
    if (d.chance(500)) d.step("a/tenant", "free", {{"slot", 40 + i}});
  }
  for (std::int64_t i = 0; i < 2; ++i) d.fault_at("scripted.get", kinds, 3, d.chance(700) ? 150'000 : 2'000'000);
  if (d.chance(150)) d.made.faults.push_back({"heap", "a", static_cast<std::uint64_t>(d.between(1, 60)), 1, "fail", 0});
  if (d.chance(200))
    d.made.faults.push_back({"suspension", "a", static_cast<std::uint64_t>(d.between(1, 10)), 1, "cancel", 0});
  static constexpr const char* ends[] = {"slow", "hang", "silent"};
  if (d.chance(250)) d.fault_at("scripted.teardown", ends, 1, 200'000);
  close_early(d, 300'000, 200'000, 1000);
}

void settings_get_exits(const parameters&, random_stream&, scripted_settings& how) {
  how.pool.registered_bytes_budget = 12 * granule;
}

// Small ones, to be explored ----------------------------------------------------------------------------------

void plan_cut_against_retire(drawing& d) {
  d.step("a/app", "try_alloc", {{"slot", 1}, {"bytes", 1}});
  d.step("a/closer", "shutdown");
}

// One arena with room for one more.
void settings_with_room(const parameters&, random_stream&, scripted_settings& how) {
  how.pool.initial_arena_bytes = 2 * granule;
  how.prepared = 1;
}

void plan_publish_against_close(drawing& d) {
  const std::int64_t bytes = d.p.at("dedicated") != 0 ? 2 * granule : 1;
  d.step("a/app", "alloc_start", {{"slot", 0}, {"bytes", bytes}});
  if (d.p.at("cancel") != 0) d.step("a/app", "cancel", {{"slot", 0}});
  d.step("a/app", "await", {{"slot", 0}});
  d.step("a/closer", "shutdown");
}

void plan_hold_against_shutdown(drawing& d) {
  d.step("a/app", "get_start", {{"slot", 0}, {"seed", 7}});
  if (d.p.at("cancel") != 0) d.step("a/app", "cancel", {{"slot", 0}});
  if (d.p.at("stuck") == 0) return d.step("a/closer", "shutdown");
  // It ends by the sweep, and what the witness proves comes beside the end of its record.
  d.made.faults.push_back({"scripted.get", "a", 1, 1, "never", 0});
  d.step("a/closer", "shutdown", {{"deadline_ns", 0}});
  d.step("a/closer", "release");
}

void settings_with_a_buffer(const parameters&, random_stream&, scripted_settings& how) {
  how.device.declared.get_works = true;
  how.prepared = 1;
}

void plan_sweep_against_allocation(drawing& d) {
  d.step("a/app", d.p.at("alloc") != 0 ? "alloc" : "try_alloc", {{"slot", 0}, {"bytes", 1}});
  d.step("a/sweeper", "reclaim");
}

// An empty arena that may go at once.
void settings_with_an_empty_arena(const parameters&, random_stream&, scripted_settings& how) {
  how.prepared = 1;
  how.prepared_dropped = true;
  how.pool.arena_reclaim_after_ns = 0;
  how.pool.retain_arena_bytes = 0;
}

void plan_two_misses(drawing& d) {
  d.step("a/one", "alloc_start", {{"slot", 0}, {"bytes", 1}});
  if (d.p.at("cancel") != 0) d.step("a/one", "cancel", {{"slot", 0}});
  d.step("a/one", "await", {{"slot", 0}});
  d.step("a/two", "alloc", {{"slot", 1}, {"bytes", 1}});
}

const parameter cancelled{"cancel", "1: what was started is given up", 0, 0, 1};

}  // namespace

void add_scripted_scenarios() {
  const auto add = [](description d) { add_scenario(std::make_unique<scripted_scenario>(std::move(d))); };
  add({"unmap-refused", "the device refuses unmaps and changes nothing, once, often or for ever (C10, PM-H68, PM-H69)",
       &plan_unmap_refused, &without_gets});
  add({"unmap-late", "confirmations come late: after the shutdown, beside or after the witness (PM-H45)",
       &plan_unmap_late, &without_gets});
  add({"unmap-never", "unmaps are not answered; the shutdown keeps its deadline and names them (C10, PM-H48)",
       &plan_unmap_never, &without_gets});
  add({"unmap-lies", "unmaps fail having been done or not, or are confirmed and were not done (B08, PM-H5)",
       &plan_unmap_lies, &without_gets});
  add({"growth-cancelled",
       "a growth is given up at any moment of its map, which may fail, be late, be wrong or never answer; others wait "
       "for "
       "it (PM-H66)",
       &plan_growth_cancelled, &without_gets});
  add({"shutdown-scripted", "the shutdown comes under load, whatever the device does; its deadline is anywhere",
       &plan_shutdown_scripted});
  add({"threads-at-the-edge", "more threads than the budget has room for; maps and unmaps go wrong (B24)",
       &plan_threads_at_the_edge, &settings_at_the_edge});
  add({"get-exits",
       "GETs end by all four exits, are given up, orphaned, of unknown fate; others want their room meanwhile (B01, "
       "B02, "
       "B13)",
       &plan_get_exits, &settings_get_exits});
  add({"cut-against-retire", "an allocation against the sweep of a shutdown", &plan_cut_against_retire,
       &settings_with_room, true});
  add({"publish-against-close",
       "a registration is answered while the pool closes",
       &plan_publish_against_close,
       nullptr,
       true,
       {cancelled, {"dedicated", "1: an arena of its own", 0, 0, 1}}});
  add({"hold-against-shutdown",
       "a GET begins and ends against the retirement of its arena",
       &plan_hold_against_shutdown,
       &settings_with_a_buffer,
       true,
       {cancelled, {"stuck", "1: the GET has no end but the sweep", 0, 0, 1}}});
  add({"reclaim-churn",
       "arenas fall empty and are swept, by age, when asked and at the end, whatever their unmaps come to",
       &plan_reclaim_churn, &settings_reclaim_churn});
  add({"pressure",
       "the budget is full of arenas that nobody uses; allocations wait until enough was given back, or not",
       &plan_pressure, &settings_pressure});
  add({"sweep-against-allocation",
       "an allocation against the sweep that takes its arena (PM-H1, PM-H2, PM-H3)",
       &plan_sweep_against_allocation,
       &settings_with_an_empty_arena,
       true,
       {{"alloc", "1: one that may register", 0, 0, 1}}});
  add({"two-misses",
       "two allocations find nothing at once; one map serves both",
       &plan_two_misses,
       nullptr,
       true,
       {cancelled}});
}

}  // namespace holdfast::sim
