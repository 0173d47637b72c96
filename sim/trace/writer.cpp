#include <sim/trace/writer.hpp>

#include <nlohmann/json.hpp>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unistd.h>

namespace holdfast::sim {

namespace {

// Fields in the order in which a person wants to read them.
using json = nlohmann::ordered_json;

struct free_stream {
  void operator()(ZSTD_CStream* stream) const noexcept { ZSTD_freeCStream(stream); }
};

class sink {
 public:
  explicit sink(const std::string& path) : final_(path), partial_(path + ".part-" + std::to_string(getpid())) {
    file_ = std::fopen(partial_.c_str(), "wbxe");
    if (file_ == nullptr) fail();
    if (path.ends_with(".zst")) {
      stream_.reset(ZSTD_createCStream());
      packed_.resize(ZSTD_CStreamOutSize());
    }
  }
  ~sink() {
    if (file_ != nullptr) {
      std::fclose(file_);
      std::remove(partial_.c_str());
    }
  }
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;

  void line(std::string text) {
    text += '\n';
    put(text, ZSTD_e_continue);
  }
  // The sentence of what went wrong, if anything did.
  std::optional<std::string> finish() {
    if (stream_) put({}, ZSTD_e_end);
    if (file_ != nullptr && !error_) {
      if (std::fclose(file_) != 0) fail();
      file_ = nullptr;
      if (!error_ && std::rename(partial_.c_str(), final_.c_str()) != 0) fail();
      if (error_) std::remove(partial_.c_str());
    }
    return error_;
  }

 private:
  void fail() {
    if (!error_) error_ = final_ + ": " + std::strerror(errno);
  }
  void put(std::string_view text, ZSTD_EndDirective how) {
    if (error_) return;
    if (!stream_) {
      if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail();
      return;
    }
    ZSTD_inBuffer input{text.data(), text.size(), 0};
    for (;;) {
      ZSTD_outBuffer output{packed_.data(), packed_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(stream_.get(), &output, &input, how);
      if (ZSTD_isError(left)) {
        error_ = final_ + ": " + ZSTD_getErrorName(left);
        return;
      }
      if (std::fwrite(packed_.data(), 1, output.pos, file_) != output.pos) return fail();
      if (how == ZSTD_e_end ? left == 0 : input.pos == input.size) return;
    }
  }

  std::string final_;
  std::string partial_;
  std::FILE* file_ = nullptr;
  std::unique_ptr<ZSTD_CStream, free_stream> stream_;
  std::vector<char> packed_;
  std::optional<std::string> error_;
};

// Messages may quote foreign bytes; a trace is UTF-8 whatever they were.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string header_line(const trace_header& h) {
  json config = json::object();
  for (const auto& [name, text] : h.config) config[name] = json::parse(text);
  json values = json::object();
  for (const auto& [name, value] : h.values) values[name] = value;
  json out;
  out["line"] = "header";
  out["format"] = trace_format;
  out["title"] = h.title;
  out["why"] = h.why;
  out["scenario"] = h.scenario;
  out["parameters"] = std::move(values);
  out["seed"] = h.seed;
  out["strategy"] = h.strategy;
  out["config"] = std::move(config);
  out["hardware"] = h.hardware;
  out["origin"] = h.origin;
  out["core"] = h.core;
  out["promises"] = h.promises;
  if (h.steps_max) out["steps_max"] = *h.steps_max;
  return dump(out);
}

std::string op_line(const op& o) {
  json arguments = json::object();
  for (const auto& [name, value] : o.numbers) arguments[name] = value;
  for (const auto& [name, value] : o.words) arguments[name] = value;
  json out;
  out["line"] = "op";
  out["who"] = o.who;
  out["what"] = o.what;
  out["args"] = std::move(arguments);
  return dump(out);
}

std::string fault_line(const fault& f) {
  json out;
  out["line"] = "fault";
  out["where"] = f.where;
  out["host"] = f.host;
  out["nth"] = f.nth;
  out["times"] = f.times;
  out["what"] = f.what;
  out["value"] = f.value;
  return dump(out);
}

// By hand: ten million choices do not go through a tree of values.
std::string choices_line(const recorded_choices& all, std::size_t first, std::size_t end, std::size_t& labels_sent,
                         std::size_t& checks_sent) {
  std::string out = R"({"line":"choices","first":)" + std::to_string(first) + R"(,"labels":[)";
  std::size_t needed = labels_sent;
  for (std::size_t i = first; i < end; ++i) needed = std::max<std::size_t>(needed, all.choices[i].label + 1);
  for (std::size_t i = labels_sent; i < needed; ++i) {
    if (i != labels_sent) out += ',';
    out += dump(json(all.labels[i]));
  }
  labels_sent = needed;
  out += R"(],"c":[)";
  for (std::size_t i = first; i < end; ++i) {
    if (i != first) out += ',';
    out += std::to_string(all.choices[i].index);
    out += ',';
    out += std::to_string(all.choices[i].label);
  }
  out += R"(],"checks":[)";
  const std::size_t checks_end = (end + trace_check_interval - 1) / trace_check_interval;
  for (std::size_t i = checks_sent; i < checks_end; ++i) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%s\"%08x\"", i == checks_sent ? "" : ",", all.checks[i]);
    out += digits;
  }
  checks_sent = checks_end;
  return out + "]}";
}

std::string end_line(const trace_end& e) {
  json out;
  out["line"] = "end";
  out["outcome"] = name_of(e.outcome);
  if (e.outcome == trace_outcome::violation) {
    out["invariant"] = e.invariant;
    out["message"] = e.message;
    out["event"] = e.event;
  } else if (e.outcome == trace_outcome::crash) {
    out["signal"] = e.signal;
  }
  out["core"] = e.core;
  if (e.on_clean_core) out["on_clean_core"] = name_of(*e.on_clean_core);
  out["steps"] = e.steps;
  out["time_ns"] = e.time_ns;
  out["fingerprint"] = e.fingerprint;
  return dump(out);
}

}  // namespace

std::optional<std::string> write_trace(const std::string& path, const trace_file& trace,
                                       const std::vector<std::string>& event_lines) {
  sink out(path);
  out.line(header_line(trace.header));
  for (const op& o : trace.what.ops) out.line(op_line(o));
  for (const fault& f : trace.what.faults) out.line(fault_line(f));
  std::size_t labels_sent = 0;
  std::size_t checks_sent = 0;
  const std::size_t total = trace.choices.choices.size();
  for (std::size_t first = 0; first < total; first += trace_choices_per_line_max) {
    const std::size_t end = std::min(total, first + trace_choices_per_line_max);
    out.line(choices_line(trace.choices, first, end, labels_sent, checks_sent));
  }
  for (const std::string& line : event_lines) out.line(line);
  out.line(end_line(trace.end));
  return out.finish();
}

}  // namespace holdfast::sim
