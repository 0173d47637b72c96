// A pool over a device that costs nothing, and the numbers that benchmarks of it share.
//
// The host backend's system calls are replaced by nothing: no registration happens in the measured parts, and locking
// what the arenas hold needs a privilege.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/host/host_backend.hpp>
#include <holdfast/base/block.hpp>
#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/pinned/pool.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::bench {

inline int no_call(const void*, std::size_t) noexcept { return 0; }
inline std::uint64_t unlimited() noexcept { return UINT64_MAX; }

/// Ends the program with a sentence if it cannot be made.
class pool {
 public:
  explicit pool(const pinned::settings& options)
      : log_(host_.clock(), 4096),  // the flight recorder is on, at its usual level
        environment_(host_.executor(), host_.clock(), log_, frames_),
        ledger_(1, options.registered_bytes_budget, log_) {
    static constexpr memory_calls calls{no_call, no_call, unlimited};
    auto device = host_backend::create(log_, 1, calls);
    if (!device) give_up(device.error());
    device_ = std::move(*device);
    auto made = pinned::memory::create(1, host_.pages(), environment_, ledger_, *device_, options);
    if (!made) give_up(made.error());
    memory_.emplace(std::move(*made));
  }
  pinned::memory& memory() noexcept { return *memory_; }
  /// A buffer that the benchmark cannot do without.
  pinned::buffer must_alloc(std::uint64_t bytes) {
    auto got = memory_->async_alloc(bytes, block);
    if (!got) give_up(got.error());
    return std::move(*got);
  }

  static void give_up(const error& why) {
    std::fprintf(stderr, "bench: %s\n", why.text().c_str());
    std::exit(1);
  }

 private:
  // Destroyed bottom-up: the pool before its device, both before the books.
  platform::host host_;
  event_log log_;
  frame_pool frames_;
  task_environment environment_;
  capacity_ledger ledger_;
  std::unique_ptr<host_backend> device_;
  std::optional<pinned::memory> memory_;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// xorshift64*: cheap beside what is measured, and the same everywhere.
class random {
 public:
  explicit random(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  std::uint64_t next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
  }
  std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<wide>(next()) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

/// The sizes of P2: b + uniform(0, b), b uniform over 4 KiB * 2^0..7.
inline std::uint64_t churn_bytes(random& draw) noexcept {
  const std::uint64_t base = std::uint64_t{4096} << draw.below(8);
  return base + draw.below(base + 1);
}

/// One document with --json, else one row a line.
inline int print(const nlohmann::json& rows, bool as_document) {
  if (as_document)
    std::cout << rows.dump() << '\n';
  else
    for (const auto& row : rows) std::cout << row.dump() << '\n';
  return 0;
}

}  // namespace holdfast::bench
