// One imaginary machine of a world.
//
// Ownership   Owned by the world. What runs on it (fibers, their allocations, its platform host) belongs to it and
//             is abandoned when it crashes.
// Threading   One OS thread.
#pragma once

#include <sim/kernel/region_heap.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

class world;
class fiber;
struct kernel_access;
struct switcher;

/// Something that a simulated file descriptor stands for. Readable = a poller that watches it wakes.
class descriptor {
 public:
  virtual bool readable() const noexcept = 0;

 protected:
  ~descriptor() = default;
};

class host {
 public:
  host() = default;
  host(const host&) = delete;
  host& operator=(const host&) = delete;

  world& owner() const noexcept { return *world_; }
  std::uint16_t index() const noexcept { return index_; }
  const std::string& name() const noexcept { return name_; }
  /// False after a crash, until the host is started again under the same name.
  bool alive() const noexcept { return alive_; }
  bool paused() const noexcept { return paused_; }
  /// Core said that it leaks on purpose (event teardown_hung): nothing but the end of the process ends that.
  bool leaks_on_purpose() const noexcept { return leaks_on_purpose_; }
  /// Number of the host's life, from 1: an event that refers to memory of an earlier life must not act.
  std::uint32_t life() const noexcept { return life_; }

  /// Starts a fiber of this host. The body runs outside kernel scope. Name without the host's: "app-1".
  fiber& spawn(std::string_view name, std::move_only_function<void()> body);

  /// Abandons every fiber of the host and drops its heap region. Callbacks registered with `on_crash` run
  /// first, in kernel scope (the hardware learns that the machine is gone).
  void crash();
  /// Stops every fiber of the host from being scheduled until `resume`. Hardware goes on.
  void pause();
  void resume();
  /// Begins a new life under the same name after a crash: what `on_restart` named is done, in kernel scope. No effect on
  /// a host that lives.
  void restart();
  void on_crash(std::function<void()> hook) { crash_hooks_.push_back(std::move(hook)); }
  /// What a machine does that is switched on again; kept for all its lives. Without, it stands there and does nothing.
  void on_restart(std::function<void()> hook) { restart_hook_ = std::move(hook); }
  /// As `world::at`, for what this life of the host brings about: after its end the event does nothing.
  std::uint64_t at(std::int64_t time_ns, std::move_only_function<void()> body);

  /// A small number for `d`, like a file descriptor's; never reused in a run.
  int open_descriptor(descriptor& d);
  void close_descriptor(int number);
  descriptor* find_descriptor(int number) const noexcept;
  /// A descriptor may have become readable: wakes the pollers that sleep on it.
  void descriptor_changed(int number);
  /// Used by the poller: `f` sleeps and wants to know when `number` becomes readable; until `unwatch`.
  void watch(fiber& f, int number);
  void unwatch(fiber& f) noexcept;

  /// Virtual time that passed while one of this host's fibers was runnable, or while it was paused: what every promise
  /// about time is extended by.
  std::int64_t stalled_ns() const noexcept;
  /// Per-host state of other rooms (memory, NIC, drivers), by a key that is the address of a static.
  template <class T>
  T& state(const void* key, auto make) {
    auto& slot = states_[key];
    if (!slot) slot = std::shared_ptr<void>(std::shared_ptr<T>(make()));
    return *static_cast<T*>(slot.get());
  }

  region_heap heap;

 private:
  friend class world;
  friend struct kernel_access;
  friend struct switcher;
  // The object is kept between worlds: `begin` makes a new host of it, `end` destroys what the run left on it.
  void begin(world& w, std::uint16_t index, std::string_view name);
  void end();

  world* world_ = nullptr;
  std::uint16_t index_ = 0;
  std::string name_;
  bool alive_ = true;
  bool paused_ = false;
  std::int64_t paused_since_ns_ = 0;
  std::uint32_t life_ = 1;
  bool leaks_on_purpose_ = false;  // core said so: a teardown hung, and what a device may still reach stays
  bool marked_ = false;            // scratch of `advance_time`: has a runnable fiber
  std::int64_t stalled_ns_ = 0;
  std::vector<std::function<void()>> crash_hooks_;
  std::function<void()> restart_hook_;
  std::map<int, descriptor*> descriptors_;
  int next_descriptor_ = 1000;
  std::vector<std::pair<fiber*, int>> sleepers_;
  // Keyed by address but never iterated: order does not matter.
  std::map<const void*, std::shared_ptr<void>> states_;
};

}  // namespace holdfast::sim
