#include <sim/campaign/campaign.hpp>

#include <sim/campaign/capture.hpp>
#include <sim/campaign/child.hpp>
#include <sim/campaign/crash_capture.hpp>
#include <sim/campaign/signals.hpp>
#include <sim/campaign/worker.hpp>
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/kernel/strategies/replay.hpp>
#include <sim/trace/writer.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <poll.h>
#include <sys/wait.h>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace holdfast::sim {

namespace {

using real_clock = std::chrono::steady_clock;

struct worker_process {
  pid_t pid = 0;
  int pipe = -1;  // -1: ended
  std::string received;
  std::uint64_t serial = 0;
  real_clock::time_point serial_since;
};

class coordinator {
 public:
  coordinator(const campaign_settings& settings, const campaign_observer& observer)
      : settings_(settings), observer_(observer), board_(settings), workers_(settings.workers) {}

  campaign_summary run() {
    for (unsigned i = 0; i < workers_.size(); ++i) start(i);
    while (std::ranges::any_of(workers_, [](const worker_process& w) { return w.pipe >= 0; })) {
      wait();
      if (stop_requested() || out_of_time()) board_.all().stop = true;
      watch();
      if (observer_.on_progress) observer_.on_progress(progress());
    }
    return summarize();
  }

 private:
  void start(unsigned number) {
    worker_process& w = workers_[number];
    int ends[2];
    if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    w.pid = fork_child([&] {
      close(ends[0]);
      work(board_, number, ends[1]);
    });
    close(ends[1]);
    w.pipe = ends[0];
    w.received.clear();
    w.serial_since = real_clock::now();
  }

  void wait() {
    std::vector<pollfd> waiting;
    std::vector<unsigned> whose;
    for (unsigned i = 0; i < workers_.size(); ++i) {
      if (workers_[i].pipe < 0) continue;
      waiting.push_back({workers_[i].pipe, POLLIN, 0});
      whose.push_back(i);
    }
    if (poll(waiting.data(), waiting.size(), 100) <= 0) return;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) read_from(whose[i]);
    }
  }

  void read_from(unsigned number) {
    worker_process& w = workers_[number];
    char part[65536];
    const ssize_t n = read(w.pipe, part, sizeof part);
    if (n < 0 && errno == EINTR) return;
    if (n > 0) {
      w.received.append(part, static_cast<std::size_t>(n));
      for (std::size_t end; (end = w.received.find('\n')) != std::string::npos;) {
        take(finding_from(w.received.substr(0, end)));
        w.received.erase(0, end + 1);
      }
      return;
    }
    close(w.pipe);
    w.pipe = -1;
    int status = 0;
    while (waitpid(w.pid, &status, 0) < 0 && errno == EINTR) {
    }
    const std::string death = death_of(status);
    if (death.empty()) return;
    died(number, death);
    // The others may have taken all there was, but this one had not asked yet.
    if (!board_.all().stop) start(number);
  }

  void take(const finding& f) {
    switch (f.is) {
      case finding::kind::violation: found(f.violated); break;
      case finding::kind::determinism: summary_.determinism_failures.push_back(f.sentence); break;
      case finding::kind::error:
        if (!summary_.error) summary_.error = f.sentence;
        break;
      case finding::kind::explored: summary_.explored.push_back(f.explored); break;
      case finding::kind::gauges:
        summary_.gauges.resize(settings_.gauges.names.size());
        for (std::size_t i = 0; i < f.gauges.size(); ++i) summary_.gauges[i] += f.gauges[i];
        break;
    }
  }

  void found(const campaign_violation& v) {
    summary_.violations.push_back(v);
    if (observer_.on_violation) observer_.on_violation(v);
  }

  void died(unsigned number, const std::string& death) {
    campaign_board::slot& slot = board_.of(number);
    const std::uint64_t unit = slot.unit.exchange(0);
    if (unit == 0) {
      summary_.error = "a worker died between two runs: " + death;
      board_.all().stop = true;
      return;
    }
    const campaign_unit u = board_.unit(unit - 1);
    const run_spec spec = board_.spec(u);
    const std::string strategy_text = board_.strategy_text(u);
    const std::string name = std::string(spec.what->name()) + ", seed " + std::to_string(spec.seed);
    const std::uint64_t forced_bytes = slot.forced_bytes;
    if (settings_.explore && forced_bytes > campaign_board::forced_bytes_max) {
      summary_.error = name + ": the process died (" + death + ") after more choices than could be kept";
      board_.all().stop = true;
      return;
    }
    // The passes after this one are still to be tried.
    if (settings_.explore && u.job->each) slot.resume = unit;
    if (settings_.traces_directory.empty()) {
      found({"crash", "the process died: " + death, "", std::string(spec.what->name()), strategy_text, spec.seed,
             board_.fault_text(u, slot.pass)});
      return;
    }
    std::error_code error;
    const bool made = std::filesystem::create_directories(settings_.traces_directory, error);
    const std::string path = trace_path(settings_.traces_directory, spec, strategy_text,
                                        trace_reason("crash", board_.fault_text(u, slot.pass)));
    const crash_report report = capture_crash(
        spec, board_.plan_for(u, slot.pass), strategy_text,
        [&]() -> std::unique_ptr<strategy> {
          if (settings_.explore && settings_.preemptions) {
            return std::make_unique<index_replay_strategy>(std::span(slot.forced, forced_bytes), after_mismatch::fifo);
          }
          return std::move(*make_strategy(strategy_text));
        },
        settings_.checks, path + ".choices-" + std::to_string(getpid()), settings_.run_seconds_max);
    if (made && (stop_requested() || report.signal.empty())) {
      std::filesystem::remove(settings_.traces_directory, error);
    }
    if (stop_requested()) return;
    if (report.signal.empty()) {
      summary_.determinism_failures.push_back(name + ": a process died (" + death + "), but not again");
      return;
    }
    campaign_violation v{
        "crash",   "the process died: " + report.signal, "", std::string(spec.what->name()), strategy_text,
        spec.seed, board_.fault_text(u, slot.pass)};
    std::string failed = report.error;
    if (failed.empty()) failed = write_trace(path, report.trace, {}).value_or("");
    if (failed.empty()) {
      v.trace = path;
    } else {
      summary_.error = failed;
      board_.all().stop = true;
    }
    if (board_.all().violations.fetch_add(1) + 1 >= settings_.violations_max) board_.all().stop = true;
    found(v);
  }

  // A run that makes no scheduling point is seen by nobody inside its process.
  void watch() {
    const auto now = real_clock::now();
    for (unsigned i = 0; i < workers_.size(); ++i) {
      worker_process& w = workers_[i];
      if (w.pipe < 0) continue;
      const campaign_board::slot& slot = board_.of(i);
      if (slot.unit == 0 || slot.serial != w.serial) {
        w.serial = slot.serial;
        w.serial_since = now;
      } else if (now - w.serial_since > std::chrono::seconds(settings_.run_seconds_max)) {
        kill(w.pid, SIGABRT);
        w.serial_since = now;
      }
    }
  }

  double seconds() const { return std::chrono::duration<double>(real_clock::now() - began_).count(); }
  bool out_of_time() const { return settings_.seconds_max > 0 && seconds() >= settings_.seconds_max; }

  campaign_progress progress() const {
    std::uint64_t runs = 0;
    for (unsigned i = 0; i < workers_.size(); ++i) runs += board_.of(i).runs;
    const bool by_time = settings_.seconds_max > 0 || settings_.explore;
    return {runs, by_time ? 0 : board_.units, seconds(), settings_.seconds_max, summary_.violations.size()};
  }

  campaign_summary summarize() {
    std::uint64_t fingerprint[2] = {};
    for (unsigned i = 0; i < workers_.size(); ++i) {
      summary_.runs += board_.of(i).runs;
      summary_.schedules += board_.of(i).schedules;
      summary_.steps += board_.of(i).steps;
      summary_.choices += board_.of(i).choices;
      summary_.calm_expected += board_.of(i).calm_expected;
      summary_.calm_reached += board_.of(i).calm_reached;
      for (std::size_t half = 0; half < 2; ++half) fingerprint[half] += board_.of(i).fingerprint[half];
    }
    char digits[33];
    std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(fingerprint[0]),
                  static_cast<unsigned long long>(fingerprint[1]));
    summary_.fingerprint = digits;
    const auto total = [this](std::size_t at) {
      std::uint64_t sum = 0;
      for (unsigned i = 0; i < workers_.size(); ++i) sum += board_.counters(i)[at];
      return sum;
    };
    for (std::size_t i = 0; i < settings_.checks.size(); ++i) {
      const check& c = *settings_.checks[i];
      summary_.checks.push_back({c.id(), c.sentence(), total(2 * i), total(2 * i + 1)});
    }
    for (std::size_t i = 0; i < board_.fault_count(); ++i) {
      const std::size_t at = 2 * (settings_.checks.size() + i);
      if (total(at) == 0) continue;
      summary_.faults.push_back({std::string(board_.scenarios[i / board_.fault_names.size()]->name()),
                                 board_.fault_names[i % board_.fault_names.size()], total(at), total(at + 1),
                                 board_.effects()[i] != 0});
    }
    for (std::size_t i = 0; i < settings_.marks.ids.size(); ++i) {
      summary_.marks.push_back({settings_.marks.ids[i], settings_.marks.sentences[i], total(board_.first_mark() + i)});
    }
    // Workers finish in any order.
    std::ranges::sort(summary_.violations, {}, [](const campaign_violation& v) {
      return std::tie(v.seed, v.scenario, v.strategy, v.fault, v.invariant);
    });
    std::ranges::sort(summary_.determinism_failures);
    summary_.seconds = seconds();
    std::ranges::sort(summary_.explored, {}, &explored_job::job);
    const bool all_explored = summary_.explored.size() == settings_.jobs.size() &&
                              std::ranges::all_of(summary_.explored, &explored_job::finished);
    const bool timed = settings_.seconds_max > 0 && !stop_requested() && !summary_.error &&
                       board_.all().violations < settings_.violations_max;
    summary_.complete = settings_.explore ? all_explored : timed || !board_.all().stop;
    return std::move(summary_);
  }

  const campaign_settings& settings_;
  const campaign_observer& observer_;
  campaign_board board_;
  std::vector<worker_process> workers_;
  campaign_summary summary_;
  real_clock::time_point began_ = real_clock::now();
};

}  // namespace

campaign_summary run_campaign(const campaign_settings& settings, const campaign_observer& observer) {
  return coordinator(settings, observer).run();
}

}  // namespace holdfast::sim
