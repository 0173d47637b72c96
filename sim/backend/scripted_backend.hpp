// A device driver for pinned memory that gives every answer its contract allows, at every time.
//
// Why this exists: no driver of today refuses an unmap, is silent about a map, or says that a deregistration happened
// when it did not, but the contract (spec/pinned-memory 6) allows each of these, and the pool must survive them. Here
// the fault plan says which request gets which answer. What the device does, it does on the simulated hardware:
// registrations exist in the NIC, bytes are written where it reaches them, so the same promises watch it as watch a
// driver.
//
// Answers, by points of the fault plan; the value is by how much they are late, in nanoseconds:
//   scripted.map       larger    ok, and the effective range is a page larger at both ends
//                      short     ok, but a page less than asked is registered (or a byte, of one page): contract broken
//                      refused   an error, nothing is registered
//                      delayed   ok, late
//                      never     no answer while the device lives, and nothing is registered
//                      silent    registered, and no answer while the device lives
//   scripted.unmap     late      confirmed, late
//                      refused   nothing changed (unknown, where the device cannot say so)
//                      unknown_done, unknown_kept    unknown; it is done, or not
//                      lie       confirmed, and the pages stay pinned
//                      never     no answer while the device lives, and the registration stays
//   scripted.get       inline    ends inside the call
//                      failed    half of the bytes land, then it fails
//                      refused   an error of the call itself, nothing was touched
//                      never     half of the bytes land, and no end comes before the sweep
//                      indeterminate    half of the bytes land, its fate is told as unknown; the rest lands late
//                      orphaned_ok, orphaned_failed, orphaned_never    the waiter is told at half; the end comes late
//   scripted.teardown  slow, hang; silent: what was not answered stays so until `stop`
// Without a fault everything is answered as asked, after the times of the options.
//
// Ownership   Made in kernel scope for one life of a host, and outlives it. Requests are the backend's until answered.
// Units       Bytes, virtual nanoseconds.
// Threading   Registrations on the fiber "device" only, transfers on "device-progress" (none if GETs do not work).
//             `start`, `tear_down` and `stop` on a fiber of the host. Answers run outside kernel scope.
// Failure     A caller that breaks the contract is a violation "backend misuse".
#pragma once

#include <sim/hardware/host_memory.hpp>
#include <sim/kernel/world.hpp>

#include <holdfast/base/witness.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

class fiber;
struct fault;

/// Where the simulated peers have their bytes: a reference whose key holds a seed names a range with the bytes of
/// `pattern_at(seed, offset)`.
holdfast::remote_reference scripted_source(const holdfast::peer_id& owner, std::uint64_t seed, std::uint64_t bytes);

struct scripted_options {
  holdfast::pinned::capabilities declared{.kind = "scripted",
                                          .get_works = true,
                                          .get_uses_memh = true,
                                          .destroy_is_fence = true,
                                          .unmap_verdict_reported = true,
                                          .can_refuse_unmap = true};
  std::uint64_t incarnation = 4711;
  std::int64_t map_ns = 20'000;
  std::int64_t unmap_ns = 10'000;
  std::int64_t get_ns = 30'000;
};

class scripted_backend final : public holdfast::pinned::backend {
 public:
  scripted_backend(host& machine, const scripted_options& how);
  scripted_backend(const scripted_backend&) = delete;
  scripted_backend& operator=(const scripted_backend&) = delete;

  const holdfast::pinned::capabilities& declared() const noexcept override { return options_.declared; }
  std::uint64_t incarnation() const noexcept override { return options_.incarnation; }
  void submit_map(holdfast::pinned::map_request& request) noexcept override;
  void submit_unmap(holdfast::pinned::unmap_request& request) noexcept override;
  holdfast::result<void> submit_get(holdfast::pinned::get_request& request) noexcept override;

  /// From now on requests are served, by fibers that start with the first of them. `log` outlives them.
  void start(holdfast::event_log& log);
  /// Worker and context end: every transfer that is left is swept, every registration dropped, what was not answered is
  /// answered. None: that did not happen by `deadline_ns` (the largest number: there is no deadline); who waits for a
  /// transfer was told so.
  std::optional<holdfast::witness> tear_down(std::int64_t deadline_ns);
  /// After a teardown that did not hang: answers whatever is left. What is submitted later is answered at once.
  void finish();
  /// After `finish`, and when nobody submits any more: ends the fibers.
  void stop();

  /// Requests that were not answered.
  std::size_t maps_left() const noexcept { return maps_.size(); }
  std::size_t unmaps_left() const noexcept { return unmaps_.size(); }
  std::size_t gets_left() const noexcept { return gets_.size(); }

 private:
  enum class map_answer : std::uint8_t { ok, larger, shorter, refused, never, silent };
  enum class unmap_answer : std::uint8_t { confirmed, refused, unknown_done, unknown_kept, lie, never };
  enum class get_answer : std::uint8_t {
    ok,
    failed,
    never,
    indeterminate,
    orphaned_ok,
    orphaned_failed,
    orphaned_never
  };
  enum class get_step : std::uint8_t { queued, half, rest, late, left };

  struct waiting_map {
    holdfast::pinned::map_request* request;
    map_answer answer;
    std::int64_t due_ns;
    bool begun = false;
  };
  struct waiting_unmap {
    holdfast::pinned::unmap_request* request;
    unmap_answer answer;
    std::int64_t due_ns;
    bool begun = false;
  };
  struct transfer {
    std::uint64_t operation;
    holdfast::pinned::get_request* request;  // null: the pool was told its end
    get_answer answer;
    get_step step = get_step::queued;
    std::int64_t due_ns;
    std::int64_t late_ns;
    // Copies: the request is gone when late bytes land.
    std::byte* destination;
    std::size_t bytes;
    std::uint64_t seed;
    std::uint32_t block;
    std::uint64_t offset;
    std::uint64_t registration;
    dma_admission admission{};
    std::uint64_t hardware_request = 0;
    std::size_t landed = 0;
  };
  struct registration {
    std::uint64_t region;
    std::uint64_t pin;
    std::byte* base;
    std::size_t bytes;
  };
  /// One fiber with work that falls due.
  struct agent {
    fiber* self = nullptr;
    object_id object = 0;
    bool idle = false;
    bool ended = false;
  };
  enum class life : std::uint8_t { running, closing, worker_gone, gone, finishing, stopping, hung };

  bool transfers() const noexcept { return options_.declared.get_works; }
  void wake(agent& one);
  void sleep(agent& one, std::int64_t until_ns);
  void wait_for(life wanted, std::int64_t until_ns);
  void enter(const char* function);
  const fault* planned(const char* point);
  /// The device does not exist any more.
  bool dead() const noexcept { return life_ == life::gone || life_ == life::finishing || life_ == life::stopping; }
  bool hurried() const noexcept { return dead() && (!silent_ || life_ != life::gone); }
  void move_to(life next);

  void serve_registrations();
  bool registration_step();
  std::int64_t next_registration_ns() const noexcept;
  bool is_due(const waiting_map& asked) const noexcept;
  bool is_due(const waiting_unmap& asked) const noexcept;
  void map(waiting_map asked);
  void begin_unmap(waiting_unmap& asked);
  void unmap(waiting_unmap asked);
  void close_context();
  registration* find(std::uint64_t region) noexcept;

  void serve_transfers();
  bool transfer_step();
  std::int64_t next_transfer_ns() const noexcept;
  transfer* find_transfer(std::uint64_t operation) noexcept;
  void advance(std::uint64_t operation);
  void begin_transfer(std::uint64_t operation);
  void half_landed(transfer& one);
  void land(transfer& one, std::size_t bytes);
  void land_after_the_end(const transfer& one);
  void complete(transfer& one, bool ok);
  void end(std::uint64_t operation, holdfast::pinned::get_outcome outcome, std::uint64_t exit, std::int64_t status);
  /// One step of the worker's destruction. False: it has to wait.
  bool destroy_worker();

  host& machine_;
  world& world_;
  const scripted_options options_;
  holdfast::event_log* log_ = nullptr;
  std::vector<waiting_map> maps_;
  std::vector<waiting_unmap> unmaps_;
  std::vector<transfer> gets_;
  std::vector<registration> registrations_;
  std::uint64_t last_region_ = 0;
  std::uint64_t last_operation_ = 0;
  std::uint64_t last_request_ = 0;
  std::uint64_t unconfirmed_ = 0;
  agent registrar_, mover_;
  fiber* waiting_ = nullptr;  // for the next state of life
  life life_ = life::running;
  bool silent_ = false;
  bool worker_destroyed_ = false;
  std::uint64_t swept_ = 0;
  std::int64_t teardown_due_ns_ = 0;
};

}  // namespace holdfast::sim
