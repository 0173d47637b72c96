// Peers: other runs of this program, each of which ends no later than this one.
//
// Why this exists: a check of this kind kills and stops processes on purpose. None may be left over, whichever way
// this one ends: by return, by a signal, or by SIGKILL.
//
// Ownership   `process_group` knows every child and is older than all; `peer_process` owns one. Destroying either kills
//             and reaps.
// Units       Durations.
// Threading   `peer_process` on the thread that made it. `interruptions` has a thread of its own, the only one on which
//             SIGINT, SIGTERM, SIGHUP and SIGQUIT arrive.
// Failure     By sentence.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/offer.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::smoke {

class process_group {
 public:
  process_group() = default;
  ~process_group() { kill_all(); }
  process_group(const process_group&) = delete;
  process_group& operator=(const process_group&) = delete;
  /// Kills and reaps every child; none can be started afterwards.
  void kill_all() noexcept;
  /// Removed by `kill_all`, too: a file that is only complete when it has its final name.
  void set_unfinished_file(std::string path);

 private:
  friend class peer_process;
  std::mutex mutex_;
  std::vector<pid_t> children_;
  std::string unfinished_file_;
  bool over_ = false;
};

/// While it lives, signals that end a program end the children first.
class interruptions {
 public:
  /// Before any other thread is started: the signals are blocked for all that come.
  explicit interruptions(process_group& children);
  ~interruptions();
  interruptions(const interruptions&) = delete;
  interruptions& operator=(const interruptions&) = delete;

 private:
  void watch(process_group& children) noexcept;
  int signals_ = -1;
  int end_ = -1;
  std::thread thread_;
};

class peer_process {
 public:
  /// Starts a peer that serves `bytes` of the pattern `seed`, and waits until it does.
  static std::expected<std::unique_ptr<peer_process>, std::string> start(process_group& group, std::uint64_t bytes,
                                                                         std::uint64_t seed,
                                                                         const std::string& ucx_library);
  ~peer_process();
  peer_process(const peer_process&) = delete;
  peer_process& operator=(const peer_process&) = delete;

  const offer& offered() const noexcept { return offer_; }
  std::uint64_t seed() const noexcept { return seed_; }
  /// Returns when the process stands still. False: it is gone.
  bool stop() noexcept;
  void resume() noexcept;
  void kill() noexcept;
  /// Asks it to end and waits. Its exit status; none: it did not end, or not by itself, and was killed.
  std::optional<int> finish(std::chrono::milliseconds bound) noexcept;

 private:
  peer_process(process_group& group, std::uint64_t seed) noexcept : group_(group), seed_(seed) {}
  std::string begin(std::uint64_t bytes, const std::string& ucx_library);
  std::string read_offer(std::chrono::milliseconds bound);
  std::optional<int> reap() noexcept;

  process_group& group_;
  std::uint64_t seed_;
  pid_t pid_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
  offer offer_;
};

/// For main: descriptors 0 to 2 exist, so that no pipe takes their place.
void open_standard_descriptors() noexcept;
/// For a peer: it ends with the process that started it.
void end_with_parent(pid_t parent) noexcept;
/// Where a peer finds the pipe for its offer.
inline constexpr int offer_descriptor = 3;

}  // namespace holdfast::smoke
