#include <sim/campaign/worker.hpp>

#include <sim/campaign/capture.hpp>
#include <sim/campaign/effect.hpp>
#include <sim/campaign/portfolio.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/kernel/strategies/exhaustive.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/kernel/strategies/replay.hpp>
#include <sim/trace/event_text.hpp>
#include <sim/trace/writer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <unistd.h>

namespace holdfast::sim {

namespace {

// Every so many seeds a run is made twice.
constexpr std::uint64_t twice_interval = 64;

std::vector<std::string> names_of_faults() {
  std::vector<std::string> out;
  for (const fault_point& point : all_fault_points()) {
    std::string_view kinds = point.kinds;
    for (;;) {
      const std::string_view kind = kinds.substr(0, kinds.find('|'));
      out.push_back(std::string(point.name) + ':' + std::string(kind));
      if (kind.size() == kinds.size()) break;
      kinds.remove_prefix(kind.size() + 1);
    }
  }
  return out;
}

std::uint64_t units_of(const campaign_settings& s) {
  if (s.explore) return s.jobs.size();
  const std::uint64_t seeds_all = s.seed_last - s.seed_first;  // less one, so that all 2^64 fit
  if (seeds_all < s.shard - 1) return 0;
  const std::uint64_t seeds = (seeds_all - (s.shard - 1)) / s.shards + 1;
  const std::uint64_t each = s.jobs.size() * s.strategies.size();
  return seeds > std::numeric_limits<std::uint64_t>::max() / each ? 0 : seeds * each;
}

std::vector<const scenario*> scenarios_of(const campaign_settings& s) {
  std::vector<const scenario*> out;
  for (const campaign_job& job : s.jobs) {
    if (std::ranges::find(out, job.what) == out.end()) out.push_back(job.what);
  }
  return out;
}

constexpr std::size_t line_bytes = 64;
constexpr std::size_t round_up(std::size_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

}  // namespace

campaign_board::campaign_board(const campaign_settings& s)
    : settings(s),
      fault_names(names_of_faults()),
      scenarios(scenarios_of(s)),
      units(units_of(s)),
      common_bytes_(round_up(sizeof(common)) + round_up(fault_count())),
      slot_bytes_(round_up(sizeof(slot)) + round_up(counter_count() * sizeof(std::atomic<std::uint64_t>))),
      block_(common_bytes_ + s.workers * slot_bytes_) {}

campaign_board::slot& campaign_board::of(unsigned worker) const noexcept {
  return *reinterpret_cast<slot*>(block_.start() + common_bytes_ + worker * slot_bytes_);
}

std::span<std::atomic<std::uint64_t>> campaign_board::counters(unsigned worker) const noexcept {
  auto* first = reinterpret_cast<std::byte*>(&of(worker)) + round_up(sizeof(slot));
  return {reinterpret_cast<std::atomic<std::uint64_t>*>(first), counter_count()};
}

std::span<std::atomic<std::uint8_t>> campaign_board::effects() const noexcept {
  return {reinterpret_cast<std::atomic<std::uint8_t>*>(block_.start() + round_up(sizeof(common))), fault_count()};
}

std::size_t campaign_board::fault_index(const scenario* of, const fault& f) const {
  const auto first =
      static_cast<std::size_t>(std::ranges::find(scenarios, of) - scenarios.begin()) * fault_names.size();
  const auto at = [this](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(fault_names, name) - fault_names.begin());
  };
  const std::size_t exact = at(f.where + ':' + f.what);
  if (exact < fault_names.size()) return first + exact;
  // Named sites and the point's first kind, which an empty word stands for.
  const std::size_t any = at(f.where + ":*");
  if (any < fault_names.size() && !f.what.empty()) return first + any;
  const auto of_point =
      std::ranges::find_if(fault_names, [&](const std::string& n) { return n.starts_with(f.where + ':'); });
  return first + static_cast<std::size_t>(of_point - fault_names.begin());
}

campaign_unit campaign_board::unit(std::uint64_t number) const {
  const campaign_settings& s = settings;
  if (s.explore) return {&s.jobs[number], 0, s.seed_first, false};
  const std::uint64_t job = number % s.jobs.size();
  const std::uint64_t strategy = number / s.jobs.size() % s.strategies.size();
  const std::uint64_t nth = number / s.jobs.size() / s.strategies.size();
  const std::uint64_t seed = s.seed_first + (s.shard - 1) + nth * s.shards;
  // Spread over jobs, so that every scenario has its turn early.
  return {&s.jobs[job], strategy, seed, (nth + job + strategy) % twice_interval == 0};
}

std::string campaign_board::strategy_text(const campaign_unit& u) const {
  if (settings.explore) return settings.preemptions ? "exhaustive:" + std::to_string(*settings.preemptions) : "fifo";
  return strategy_for(settings.strategies[u.strategy], u.job->what->name(), u.seed);
}

plan campaign_board::plan_for(const campaign_unit& u, std::uint64_t pass) const {
  plan out = u.job->what->generate(u.job->values, u.seed);
  if (u.job->no_planned_faults) out.faults.clear();
  if (u.job->each) {
    out.faults.push_back(*u.job->each);
    out.faults.back().nth = pass;
  }
  return out;
}

std::string campaign_board::fault_text(const campaign_unit& u, std::uint64_t pass) const {
  if (!u.job->each) return "";
  return u.job->each->where + ':' + u.job->each->what + ", pass " + std::to_string(pass);
}

std::string to_line(const finding& f) {
  nlohmann::json out;
  out["is"] = static_cast<int>(f.is);
  out["violation"] = {f.violated.invariant, f.violated.message, f.violated.trace, f.violated.scenario,
                      f.violated.strategy,  f.violated.seed,    f.violated.fault};
  out["sentence"] = f.sentence;
  out["explored"] = {f.explored.job, f.explored.passes, f.explored.finished, f.explored.sites};
  out["gauges"] = f.gauges;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

finding finding_from(const std::string& line) {
  const nlohmann::json in = nlohmann::json::parse(line);
  finding out{};
  out.is = static_cast<finding::kind>(in.at("is").get<int>());
  const auto& v = in.at("violation");
  out.violated = {v.at(0), v.at(1), v.at(2), v.at(3), v.at(4), v.at(5), v.at(6)};
  out.sentence = in.at("sentence");
  const auto& e = in.at("explored");
  out.explored = {e.at(0), e.at(1), e.at(2), e.at(3)};
  out.gauges = in.at("gauges").get<std::vector<std::uint64_t>>();
  return out;
}

namespace {

// Events compared to say where two runs with the same seed part.
constexpr std::size_t compared_events_max = 200'000;

class worker {
 public:
  worker(const campaign_board& board, unsigned number, int pipe)
      : board_(board),
        settings_(board.settings),
        slot_(board.of(number)),
        counters_(board.counters(number)),
        pipe_(pipe) {
    seen_.resize(2 * settings_.checks.size());
    count_checks(false);
    marks_seen_.resize(settings_.marks.ids.size());
  }

  void run() {
    const std::vector<std::uint64_t> before = read_gauges();
    if (const std::uint64_t unit = slot_.resume.exchange(0); unit != 0) {
      // The one before died here; that pass is known, and the others are still to be tried.
      slot_.unit = unit;
      explore(unit - 1, slot_.pass + 1);
      slot_.unit = 0;
    }
    while (!board_.all().stop) {
      const std::uint64_t number = board_.all().next_unit.fetch_add(1);
      if (board_.units != 0 && number >= board_.units) break;
      slot_.unit = number + 1;
      if (settings_.explore) {
        explore(number, 1);
      } else {
        sample(board_.unit(number));
      }
      slot_.unit = 0;
    }
    finding last{.is = finding::kind::gauges, .gauges = read_gauges()};
    for (std::size_t i = 0; i < last.gauges.size(); ++i) last.gauges[i] -= before[i];
    send(last);
  }

 private:
  std::unique_ptr<strategy> chooser_for(const campaign_unit& u) const {
    return std::move(*make_strategy(board_.strategy_text(u)));
  }

  void sample(const campaign_unit& u) {
    const std::unique_ptr<strategy> made = chooser_for(u);
    strategy& chooser = *made;
    const run_spec spec = board_.spec(u);
    const plan plan = board_.plan_for(u, 1);
    const run_outcome outcome = make(spec, plan, chooser, u.twice);
    add_fingerprint(outcome, slot_.unit);
    if (outcome.error) return fail(*outcome.error, spec);
    if (outcome.wrong) return report(spec, plan, outcome, chooser.name(), "");
    if (!u.twice) return;
    const run_outcome again = make(spec, board_.plan_for(u, 1), chooser, true);
    if (!same_outcome(outcome, again)) not_repeated(u, outcome, again);
  }

  void explore(std::uint64_t number, std::uint64_t first_pass) {
    const campaign_unit u = board_.unit(number);
    finding done{.is = finding::kind::explored};
    // A death cuts a search short, but not the one schedule of fifo.
    done.explored = {number, first_pass - 1, first_pass == 1 || !settings_.preemptions, {}};
    sites_.clear();
    for (std::uint64_t pass = first_pass;; ++pass) {
      slot_.pass = pass;
      const ending ended = settings_.preemptions ? explore_all(u, pass) : explore_fifo(u, pass);
      if (!ended.finished) done.explored.finished = false;
      if (!u.job->each || !ended.struck || board_.all().stop) break;
      done.explored.passes = pass;
    }
    if (board_.all().stop) done.explored.finished = false;
    done.explored.sites.assign(sites_.begin(), sites_.end());
    send(done);
  }

  struct ending {
    bool finished = false;
    bool struck = false;
  };

  ending explore_fifo(const campaign_unit& u, std::uint64_t pass) {
    fifo_strategy chooser;
    slot_.forced_bytes = 0;
    ending out;
    explore_once(u, pass, chooser, 1, out.struck);
    add(slot_.schedules, 1);
    out.finished = !board_.all().stop;
    return out;
  }

  ending explore_all(const campaign_unit& u, std::uint64_t pass) {
    exhaustive_strategy chooser(*settings_.preemptions);
    ending out;
    std::uint64_t counted = 0, restarts = 0;
    do {
      if (board_.all().stop) return out;
      publish_forced(chooser);
      add(slot_.schedules, 1);
      ++counted;
      if (!explore_once(u, pass, chooser, chooser.schedules() + 1, out.struck)) return out;
      if (chooser.strayed()) {
        send({finding::kind::determinism, {}, where(board_.spec(u)) + ": the same choices led elsewhere"});
        return out;
      }
      out.finished = !chooser.advance();
      if (chooser.restarts() != restarts) {
        restarts = chooser.restarts();
        add(slot_.schedules, 0 - std::exchange(counted, 0));
      }
    } while (!out.finished);
    return out;
  }

  // False: it is no use to go on.
  bool explore_once(const campaign_unit& u, std::uint64_t pass, strategy& chooser, std::uint64_t schedule,
                    bool& struck) {
    const run_spec spec = board_.spec(u);
    const plan plan = board_.plan_for(u, pass);
    const run_outcome outcome = make(spec, plan, chooser, false);
    add_fingerprint(outcome, schedule + (pass - 1) * 0x100000000u);
    if (outcome.error) {
      fail(*outcome.error, spec);
      return false;
    }
    struck = struck || (u.job->each && outcome.struck.back() != 0);
    if (outcome.wrong) report(spec, plan, outcome, chooser.name(), board_.fault_text(u, pass));
    return !outcome.wrong;
  }

  run_outcome make(const run_spec& spec, const plan& plan, strategy& chooser, bool indices) {
    slot_.serial.fetch_add(1, std::memory_order_relaxed);
    // Planned faults of which no effect is known yet.
    std::vector<effect_digest> suspects;
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      if (board_.effects()[board_.fault_index(spec.what, plan.faults[i])] == 0) suspects.emplace_back(i);
    }
    std::vector<listener*> listening;
    for (effect_digest& d : suspects) listening.push_back(&d);
    if (settings_.marks.watch != nullptr) {
      settings_.marks.begin();
      listening.push_back(settings_.marks.watch);
    }
    run_outcome out = run_one(
        spec, plan, chooser,
        {settings_.checks, listening, true, indices || !suspects.empty(), settings_.explore ? &sites_ : nullptr});
    add(slot_.runs, 1);
    add(slot_.steps, out.steps);
    add(slot_.choices, out.choices);
    add(slot_.calm_expected, out.calm_expected ? 1 : 0);
    add(slot_.calm_reached, out.calm_expected && out.calm_reached ? 1 : 0);
    count_checks(true);
    count_marks();
    for (std::size_t i = 0; i < out.struck.size(); ++i) {
      const std::size_t at = 2 * (settings_.checks.size() + board_.fault_index(spec.what, plan.faults[i]));
      add(counters_[at], 1);
      if (out.struck[i] != 0) add(counters_[at + 1], 1);
    }
    for (const effect_digest& d : suspects) {
      std::atomic<std::uint8_t>& effect = board_.effects()[board_.fault_index(spec.what, plan.faults[d.index()])];
      if (out.error || out.cut || out.struck[d.index()] == 0 || effect != 0) continue;
      const std::span<check* const> same_checks =
          out.wrong ? std::span<check* const>(settings_.checks) : std::span<check* const>();
      if (had_effect(spec, plan, d, out.indices, same_checks)) effect = 1;
    }
    return out;
  }

  void add_fingerprint(const run_outcome& outcome, std::uint64_t number) {
    for (std::size_t half = 0; half < 2 && outcome.fingerprint.size() == 32; ++half) {
      std::uint64_t mixed = std::stoull(outcome.fingerprint.substr(16 * half, 16), nullptr, 16) + number;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
      add(slot_.fingerprint[half], mixed ^ (mixed >> 31));
    }
  }

  void report(const run_spec& spec, const plan& plan, const run_outcome& outcome, std::string_view strategy_text,
              const std::string& fault_text) {
    finding out{.is = finding::kind::violation};
    out.violated = {outcome.wrong->invariant,
                    outcome.wrong->message,
                    "",
                    std::string(spec.what->name()),
                    std::string(strategy_text),
                    spec.seed,
                    fault_text};
    captured_run captured = capture(spec, plan, outcome, strategy_text, settings_.checks, captured_events_max);
    if (captured.repeated && !settings_.traces_directory.empty()) {
      const std::string path = trace_path(settings_.traces_directory, spec, strategy_text,
                                          trace_reason(outcome.wrong->invariant, fault_text));
      std::error_code error;
      std::filesystem::create_directories(settings_.traces_directory, error);
      if (error) return fail(settings_.traces_directory + ": " + error.message(), spec);
      if (const auto failed = write_trace(path, captured.trace, captured.event_lines)) return fail(*failed, spec);
      out.violated.trace = path;
    } else if (!captured.repeated) {
      const std::string now = captured.again.wrong
                                  ? captured.again.wrong->invariant + ": " + captured.again.wrong->message
                                  : std::string("it ended clean");
      send({finding::kind::determinism,
            {},
            where(spec) + ": the violation of " + outcome.wrong->invariant + " did not repeat: " + now});
    }
    if (board_.all().violations.fetch_add(1) + 1 >= settings_.violations_max) board_.all().stop = true;
    send(out);
  }

  void not_repeated(const campaign_unit& u, const run_outcome& first, const run_outcome& second) {
    std::string sentence =
        where(board_.spec(u)) + ": two runs differ: fingerprints " + first.fingerprint + " and " + second.fingerprint;
    const auto texts = [&] {
      event_collector out(event_collector::form::text, compared_events_max);
      listener* const listening[] = {&out};
      run_one(board_.spec(u), board_.plan_for(u, 1), *chooser_for(u), {settings_.checks, listening, false, false});
      return std::move(out.lines);
    };
    const auto a = texts();
    const auto b = texts();
    const auto [at_a, at_b] = std::ranges::mismatch(a, b);
    if (at_a != a.end() || at_b != b.end()) {
      sentence += "; the first different event is number " + std::to_string(at_a - a.begin() + 1) + ": '" +
                  (at_a == a.end() ? "none" : *at_a) + "' and '" + (at_b == b.end() ? "none" : *at_b) + "'";
    }
    send({finding::kind::determinism, {}, sentence});
  }

  void fail(const std::string& sentence, const run_spec& spec) {
    board_.all().stop = true;
    send({finding::kind::error, {}, where(spec) + ": " + sentence});
  }

  static std::string where(const run_spec& spec) {
    return std::string(spec.what->name()) + ", seed " + std::to_string(spec.seed);
  }

  void publish_forced(const exhaustive_strategy& chooser) {
    forced_.clear();
    for (const std::uint32_t entry : chooser.forced()) append_index(forced_, entry);
    if (forced_.size() <= campaign_board::forced_bytes_max) std::ranges::copy(forced_, slot_.forced);
    slot_.forced_bytes = forced_.size();
  }

  std::vector<std::uint64_t> read_gauges() const {
    return settings_.gauges.read ? settings_.gauges.read() : std::vector<std::uint64_t>{};
  }

  // A check's counters rise over the life of its process; the board's over the life of the campaign.
  void count_checks(bool publish) {
    for (std::size_t i = 0; i < settings_.checks.size(); ++i) {
      const std::uint64_t now[] = {settings_.checks[i]->evaluated, settings_.checks[i]->exercised};
      for (std::size_t j = 0; j < 2; ++j) {
        if (publish && now[j] != seen_[2 * i + j]) add(counters_[2 * i + j], now[j] - seen_[2 * i + j]);
        seen_[2 * i + j] = now[j];
      }
    }
  }

  void count_marks() {
    if (settings_.marks.watch == nullptr) return;
    const std::span<const std::uint64_t> now = settings_.marks.end();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] != marks_seen_[i]) add(counters_[board_.first_mark() + i], now[i] - marks_seen_[i]);
      marks_seen_[i] = now[i];
    }
  }

  // One writer: no read-modify-write is needed.
  static void add(std::atomic<std::uint64_t>& to, std::uint64_t n) {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  void send(const finding& f) {
    const std::string line = to_line(f);
    std::size_t done = 0;
    while (done < line.size()) {
      const ssize_t n = ::write(pipe_, line.data() + done, line.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      done += static_cast<std::size_t>(n);
    }
  }

  const campaign_board& board_;
  const campaign_settings& settings_;
  campaign_board::slot& slot_;
  std::span<std::atomic<std::uint64_t>> counters_;
  int pipe_;
  std::vector<std::uint64_t> seen_;
  std::vector<std::uint64_t> marks_seen_;
  std::vector<std::uint8_t> forced_;
  std::set<std::string, std::less<>> sites_;  // of an exploration
};

}  // namespace

void work(const campaign_board& board, unsigned number, int pipe) { worker(board, number, pipe).run(); }

}  // namespace holdfast::sim
