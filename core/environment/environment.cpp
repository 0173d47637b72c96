#include <holdfast/platform/abi.hpp>

#include <holdfast/environment.hpp>

#include "environment/toml_file.hpp"

#include <holdfast/runtime/configured.hpp>
#include <holdfast/runtime/host_device.hpp>
#include <holdfast/runtime/ucx_device.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

extern "C" char** environ;

namespace holdfast::inline HOLDFAST_ABI {

namespace {

constexpr const char* file_variable = "HOLDFAST_CONFIG";
constexpr const char* usual_file = "holdfast.toml";

std::vector<options::assignment> variables() {
  std::vector<options::assignment> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("HOLDFAST_")) continue;
    const std::size_t sign = text.find('=');
    if (sign == text.npos) continue;
    out.push_back({std::string(text.substr(0, sign)), std::string(text.substr(sign + 1))});
  }
  return out;
}

std::string why(int number) { return std::strerror(number); }

// A byte more than is allowed is read, so that the reader sees that there is more.
std::expected<std::string, std::string> contents(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::unexpected(file + ": cannot be opened: " + why(errno));
  std::string text;
  struct stat about{};
  int failed = ::fstat(descriptor, &about) != 0 ? errno : 0;
  if (failed == 0 && !S_ISREG(about.st_mode)) {
    ::close(descriptor);
    return std::unexpected(file + ": is no regular file");
  }
  while (failed == 0 && text.size() <= options::toml_bytes_max) {
    char block[4096];
    const ssize_t got = ::read(descriptor, block, sizeof block);
    if (got == 0) break;
    if (got > 0)
      text.append(block, static_cast<std::size_t>(got));
    else if (errno != EINTR)
      failed = errno;
  }
  ::close(descriptor);
  if (failed != 0) return std::unexpected(file + ": cannot be read: " + why(failed));
  return text;
}

}  // namespace

std::string configuration_file() {
  if (const char* const named = std::getenv(file_variable); named != nullptr && *named != '\0') return named;
  return ::access(usual_file, F_OK) == 0 ? usual_file : "";
}

std::expected<options::configuration, options::refusal> read_configuration(std::vector<options::assignment> overrides) {
  options::sources given{std::move(overrides), variables(), {}};
  options::refusal wrong;
  if (const std::string file = configuration_file(); !file.empty()) {
    const auto text = contents(file);
    if (!text) {
      wrong.add(file == usual_file ? text.error() : text.error() + "; HOLDFAST_CONFIG names it");
    } else if (auto read = options::read_toml(*text, file); read) {
      given.file = std::move(*read);
    } else {
      wrong = std::move(read.error());
    }
  }
  auto made = options::resolve(given);
  if (wrong.sentences.empty()) return made;
  // What else is wrong is said too.
  if (!made) {
    for (std::string& sentence : made.error().sentences) wrong.add(std::move(sentence));
    wrong.more += made.error().more;
  }
  return std::unexpected(std::move(wrong));
}

result<runtime> from_environment(platform::host& host, std::vector<options::assignment> overrides) {
  constexpr const char* operation = "runtime.from_environment";
  try {
    const auto read = read_configuration(std::move(overrides));
    if (!read) return fail_with_words(error_code::invalid_argument, operation, read.error().sentences.front());
    const runtime_options options = configured_runtime(*read);
    const std::string& backend = read->text(options::option_id::runtime_backend);
    if (backend != "host") {
      auto made = runtime::create(host, options, ucx_device(configured_ucx(*read)));
      if (made || backend == "ucx" || made.error().code != error_code::absent) return made;
    }
    return runtime::create(host, options, host_device());
  } catch (const std::bad_alloc&) {
    return fail(error_code::out_of_memory, operation);
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI
