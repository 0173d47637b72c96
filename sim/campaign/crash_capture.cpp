#include <sim/campaign/crash_capture.hpp>

#include <sim/campaign/capture.hpp>
#include <sim/campaign/child.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <unistd.h>
#include <vector>

namespace holdfast::sim {

namespace {

// One record a choice, written whole by one call, so that the file ends with a whole record whenever the process dies.
struct spooled_choice {
  std::uint32_t index;
  std::uint32_t label_bytes;  // of the label that follows; 0: it was sent before, `label` says which
  std::uint32_t label;
  std::uint32_t check;
  std::uint64_t steps;
  std::int64_t time_ns;
};

class spool_listener final : public listener {
 public:
  explicit spool_listener(int descriptor) : descriptor_(descriptor) {}
  void on_choice(world& w, const choice_point&, std::uint32_t index) override {
    const std::string label = w.label(index);
    spooled_choice record{index, 0, 0, 0, w.step_count(), w.now()};
    if (count_++ % trace_check_interval == 0) record.check = w.enabled_check();
    const auto [found, fresh] = labels_.emplace(label, static_cast<std::uint32_t>(labels_.size()));
    record.label = found->second;
    if (fresh) record.label_bytes = static_cast<std::uint32_t>(label.size());
    bytes_.assign(reinterpret_cast<const char*>(&record), sizeof record);
    if (fresh) bytes_ += label;
    if (::write(descriptor_, bytes_.data(), bytes_.size()) != static_cast<ssize_t>(bytes_.size())) {
      w.violate("simulator", std::string("the choices cannot be written: ") + std::strerror(errno));
    }
  }

 private:
  int descriptor_;
  std::uint64_t count_ = 0;
  std::map<std::string, std::uint32_t> labels_;
  std::string bytes_;
};

void read_spool(std::FILE* file, trace_file& into) {
  spooled_choice record;
  while (std::fread(&record, sizeof record, 1, file) == 1) {
    if (record.label_bytes != 0) {
      std::string label(record.label_bytes, '\0');
      if (std::fread(label.data(), label.size(), 1, file) != 1) return;
      into.choices.labels.push_back(std::move(label));
    }
    if (into.choices.choices.size() % trace_check_interval == 0) into.choices.checks.push_back(record.check);
    into.choices.choices.push_back({record.index, record.label});
    into.end.steps = record.steps;
    into.end.time_ns = record.time_ns;
  }
}

}  // namespace

crash_report capture_crash(const run_spec& spec, const plan& plan, std::string_view strategy_text,
                           const std::function<std::unique_ptr<strategy>()>& make_chooser,
                           std::span<check* const> checks, const std::string& spool, unsigned limit_seconds) {
  crash_report out;
  const int descriptor = open(spool.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    out.error = spool + ": " + std::strerror(errno);
    return out;
  }
  const child_answer answer = in_child(
      [&] {
        const std::unique_ptr<strategy> chooser = make_chooser();
        spool_listener spooling(descriptor);
        listener* const listening[] = {&spooling};
        run_one(spec, plan, *chooser, {checks, listening, false, false});
        return std::string("ended");
      },
      limit_seconds);
  close(descriptor);
  out.signal = answer.death;
  if (!out.signal.empty()) {
    out.trace.header = header_for(spec, strategy_text);
    out.trace.header.title = "A crash in " + std::string(spec.what->name());
    out.trace.header.why = "Found by a run with seed " + std::to_string(spec.seed) + '.';
    out.trace.header.promises = {"crash"};
    out.trace.what = plan;
    out.trace.end.outcome = trace_outcome::crash;
    out.trace.end.signal = out.signal;
    out.trace.end.core = core_id();
    if (out.trace.end.core != "clean") out.trace.end.on_clean_core = trace_outcome::clean;
    if (std::FILE* file = std::fopen(spool.c_str(), "rbe")) {
      read_spool(file, out.trace);
      std::fclose(file);
    } else {
      out.error = spool + ": " + std::strerror(errno);
    }
  }
  std::remove(spool.c_str());
  return out;
}

}  // namespace holdfast::sim
