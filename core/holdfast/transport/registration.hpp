// The thread that registers and deregisters memory.
//
// Why this exists: mapping a gigabyte takes long, and must stop neither the progress thread nor a caller. Unmaps
// are taken before maps, because they give something back (spec/transport 7.3).
//
// Ownership   A job is the submitter's until `submit` answered true, then the thread's until its answer, in which it
//             may destroy itself. Regions are numbers that are issued once and never used again.
// Units       Bytes.
// Threading   `submit` and `handle_of` from any thread. Answers run on the registration thread with no lock held.
// Failure     `submit` answers false after `finish`: the job is the submitter's again. A job that is inside the
//             library when the thread is abandoned is never answered.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/thread.hpp>
#include <holdfast/transport/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <map>

namespace holdfast::inline HOLDFAST_ABI::transport {

struct registered_memory {
  std::uint64_t region = 0;
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  packed_key key;
};

class registration;

/// What the thread works on.
class registration_job {
 public:
  registration_job* next_job = nullptr;

 protected:
  ~registration_job() = default;

 private:
  friend class registration;
  virtual void perform(registration& by) noexcept = 0;
  /// Instead of `perform`, when the transport ends.
  virtual void give_up(registration& by) noexcept = 0;
};

class map_job : public registration_job {
 public:
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  /// Exactly once. An error means: no registration exists and none will appear.
  virtual void mapped(const result<registered_memory>& answer) noexcept = 0;

 protected:
  ~map_job() = default;

 private:
  void perform(registration& by) noexcept final;
  void give_up(registration& by) noexcept final;
};

/// In the order of the event `unmap_answered`.
enum class unmap_result : std::uint8_t { confirmed, refused, unknown };

class unmap_job : public registration_job {
 public:
  std::uint64_t region = 0;
  /// At most once.
  virtual void unmapped(unmap_result verdict) noexcept = 0;

 protected:
  ~unmap_job() = default;

 private:
  void perform(registration& by) noexcept final;
  void give_up(registration& by) noexcept final;
};

/// Runs something on the registration thread, in turn with maps.
class errand : public registration_job {
 public:
  virtual void run() noexcept = 0;

 protected:
  ~errand() = default;

 private:
  void perform(registration& by) noexcept final;
  void give_up(registration& by) noexcept final;
};

class registration {
 public:
  /// Told once, on the registration thread, when everything is unmapped and the context is closed.
  class listener {
   public:
    /// `unconfirmed`: unmaps that the library did not confirm; the end of the context covers them.
    virtual void context_closed(std::uint64_t unconfirmed) noexcept = 0;

   protected:
    ~listener() = default;
  };

  registration(wire& library, listener& told) noexcept : wire_(library), told_(told) {}

  result<void> start() noexcept;
  bool submit(map_job& job) noexcept { return push(job, false); }
  bool submit(unmap_job& job) noexcept { return push(job, true); }
  bool submit(errand& job) noexcept { return push(job, false); }

  /// The library's handle of a region, or null.
  wire_region handle_of(std::uint64_t region) const noexcept;
  std::uint64_t regions() const noexcept;

  /// Last order: queued maps fail, queued unmaps are done, what is left is unmapped, the context is closed.
  void finish() noexcept;
  /// The thread leaves at its next step without calling the library again, and tells nobody.
  void stand_down() noexcept;
  /// Waits until the thread left its loop, at most until the deadline. False: it is still inside the library.
  bool wait_left(platform::time_point deadline) noexcept;
  void join() noexcept;
  void abandon() noexcept;

 private:
  friend class map_job;
  friend class unmap_job;
  struct queue {
    registration_job* first = nullptr;
    registration_job* last = nullptr;
  };

  bool push(registration_job& job, bool first) noexcept;
  static registration_job* pop(queue& from) noexcept;
  void body() noexcept;
  void do_map(map_job& job) noexcept;
  void do_unmap(unmap_job& job) noexcept;
  void close_down() noexcept;
  /// Whether the owner left: then nobody is told anything any more.
  bool stood_down() noexcept;

  wire& wire_;
  listener& told_;
  mutable platform::mutex mutex_{lock_ranks::transport_registration};
  platform::condition_variable changed_;
  queue unmaps_ HOLDFAST_GUARDED_BY(mutex_);
  queue maps_ HOLDFAST_GUARDED_BY(mutex_);
  std::map<std::uint64_t, wire_region> regions_ HOLDFAST_GUARDED_BY(mutex_);
  std::uint64_t last_region_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  bool finishing_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool standing_down_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool left_ HOLDFAST_GUARDED_BY(mutex_) = false;
  // Last, so that it is destroyed first; it is joined or abandoned before that.
  platform::thread thread_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
