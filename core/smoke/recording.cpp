#include <holdfast/platform/abi.hpp>

#include "smoke/recording.hpp"

#include "smoke/machine.hpp"

#include <holdfast/telemetry/event_line.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace holdfast::smoke {

namespace {

using json = nlohmann::ordered_json;

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

recording::~recording() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  ::unlink(unfinished_.c_str());
  group_.set_unfinished_file({});
}

std::string recording::open(const std::string& path) {
  path_ = path;
  unfinished_ = path + ".part-" + std::to_string(::getpid());
  group_.set_unfinished_file(unfinished_);
  file_ = std::fopen(unfinished_.c_str(), "wxe");
  if (file_ == nullptr) {
    const int number = errno;
    group_.set_unfinished_file({});
    return path + ": " + std::strerror(number);
  }
  json header;
  header["line"] = "header";
  header["format"] = 1;
  header["title"] = "a smoke check of a machine";
  header["why"] = "recorded by holdfast-smoke";
  header["scenario"] = "holdfast-smoke";
  header["parameters"] = json::object();
  header["seed"] = 0;
  header["strategy"] = "real";
  header["config"] = json::object();
  header["hardware"] = "real";
  header["origin"] = "recorded";
  header["core"] = program_build_id();
  header["promises"] = json::array();
  line(dump(header));
  return {};
}

void recording::add(std::string_view who, std::span<const event_record> events) {
  if (file_ == nullptr) return;
  for (const event_record& event : events) {
    line(event_line(event, ++number_, who));
    last_ns_ = std::max(last_ns_, event.time_ns);
  }
}

std::string recording::finish(const checks& found) {
  if (file_ == nullptr) return {};
  json end;
  end["line"] = "end";
  const check* const failed = found.first_failure();
  end["outcome"] = failed == nullptr ? "clean" : "violation";
  if (failed != nullptr) {
    end["invariant"] = "smoke";
    end["message"] = failed->part + ", " + failed->name + ": " + failed->reason;
    end["event"] = number_;
  }
  end["core"] = "clean";
  end["steps"] = 0;
  end["time_ns"] = last_ns_;
  end["fingerprint"] = "";
  line(dump(end));
  if (std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0 && std::rename(unfinished_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) ::unlink(unfinished_.c_str());
  group_.set_unfinished_file({});
  return error_ == 0 ? std::string() : path_ + ": " + std::strerror(error_);
}

void recording::line(std::string text) {
  text += '\n';
  if (error_ == 0 && std::fwrite(text.data(), 1, text.size(), file_) != text.size()) error_ = errno;
}

}  // namespace holdfast::smoke
