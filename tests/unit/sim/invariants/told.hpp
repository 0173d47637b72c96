// A world that is told events, and all invariants listening: for tests of checks without the core that they watch.
//
// Ownership   The world belongs to it. Checks are those of the process, and forget the run before.
// Threading   One OS thread, in kernel scope.
// Failure     An event with another number of fields than the tables say fails the test.
#pragma once

#include <sim/kernel/check.hpp>
#include <sim/kernel/world.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim::streams {

using holdfast::event_id;

/// Without fibers, but those that hold a lock.
class told {
 public:
  told();

  template <class... Fields>
  told& core(event_id id, Fields... fields) {
    return tell(kind_of(id), {static_cast<std::uint64_t>(fields)...});
  }
  template <class... Fields>
  told& device(hardware_event id, Fields... fields) {
    return tell(kind_of(id), {static_cast<std::uint64_t>(fields)...});
  }
  told& on_fiber(std::uint32_t fiber) {
    fiber_ = fiber;
    return *this;
  }
  told& at(std::int64_t time_ns) {
    time_ns_ = time_ns;
    return *this;
  }
  told& rest();
  told& stuck();
  /// What was broken so far is forgotten; what happened is not.
  told& forgiven();
  /// Calls `body` on a fiber that holds a lock.
  told& under_a_lock(const std::function<void(told&)>& body);
  /// What a stage does when it looks.
  world& looking() { return *world_; }
  /// The invariant that was broken first, or "".
  std::string broken() const { return world_->violated() ? world_->violated()->invariant : ""; }
  std::string message() const { return world_->violated() ? world_->violated()->message : ""; }

 private:
  class first_entry final : public strategy {
   public:
    std::string_view name() const noexcept override { return "first"; }
    void begin(world&) override {}
    std::uint32_t choose(world&, const choice_point&) override { return 0; }
  };

  told& tell(event_kind kind, std::initializer_list<std::uint64_t> fields);

  first_entry strategy_;
  std::optional<world> world_;
  std::map<std::uint16_t, std::vector<check*>> by_kind_;
  std::uint64_t number_ = 0;
  std::int64_t time_ns_ = 0;
  std::uint32_t fiber_ = 1;
};

}  // namespace holdfast::sim::streams
