// One core of this process: host, runtime, and how it ends.
//
// Why this exists: each part of the check makes one the same way, and what a core that does not end by its deadline
// means is decided once.
//
// Ownership   Owns host and runtime. A core that did not end is left alone, threads and all, and the program must leave
//             by `_exit`: see `left_alone`.
// Units       Bytes, durations.
// Threading   One thread.
// Failure     By value.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/awaited.hpp"

#include <holdfast/platform/host.hpp>
#include <holdfast/runtime/runtime.hpp>

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::smoke {

enum class device_kind : std::uint8_t { ucx, host };

class node {
 public:
  /// `ucx_library`: see options.hpp. `shared_memory`: whether GETs may go through it.
  static result<std::unique_ptr<node>> open(device_kind kind, const pinned::settings& values,
                                            const std::string& ucx_library = {}, bool shared_memory = true);
  ~node();

  pinned::memory& memory() noexcept { return core_->pinned(); }
  transport::transport& peers() noexcept { return *core_->peers(); }
  std::vector<event_record> events() const { return core_->events().copy_recent(); }

  struct ending {
    runtime_report report;
    std::int64_t took_ns = 0;
  };
  /// Ends the core; waits for the deadline and `grace` more. The error is a sentence.
  std::expected<ending, std::string> shut_down(steady::duration deadline, steady::duration grace);
  /// Whether some core of this process did not end.
  static bool left_alone() noexcept { return left_alone_; }

  /// A buffer, waiting for it to a bound. The error is a sentence.
  std::expected<pinned::buffer, std::string> alloc(std::uint64_t bytes, pinned::alloc_options how = {});

 private:
  struct parts {
    platform::host host{2};
    std::optional<runtime> core;
  };
  explicit node(std::unique_ptr<parts> made) noexcept : parts_(std::move(made)), core_(&*parts_->core) {}

  std::unique_ptr<parts> parts_;
  runtime* core_;
  bool ended_ = false;
  static bool left_alone_;
};

/// How long anything of a machine that is alive may take.
inline constexpr std::chrono::seconds patience{60};

/// "operation: code: words".
std::string sentence(const error& why);

}  // namespace holdfast::smoke
