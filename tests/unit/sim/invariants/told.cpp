#include "told.hpp"

#include <properties/invariants/registry.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/mutex.hpp>

#include <gtest/gtest.h>

namespace holdfast::sim::streams {

told::told() {
  forgiven();
  for (check* c : invariants::all_checks()) {
    c->begin(*world_);
    for (const event_kind kind : c->wants()) by_kind_[static_cast<std::uint16_t>(kind)].push_back(c);
  }
}

told& told::rest() {
  for (check* c : invariants::all_checks()) c->at_rest(*world_);
  return *this;
}

told& told::stuck() {
  for (check* c : invariants::all_checks()) c->at_stuck(*world_);
  return *this;
}

told& told::forgiven() {
  world_.reset();
  world_.emplace(world_settings{}, strategy_);
  world_->add_host("a");
  return *this;
}

told& told::under_a_lock(const std::function<void(told&)>& body) {
  world_->hosts().front()->spawn("main", [this, &body] {
    platform::mutex mutex(lock_ranks::base_ledger);
    scoped_lock lock(mutex);
    kernel_scope kernel;
    body(*this);
  });
  world_->run();
  return *this;
}

told& told::tell(event_kind kind, std::initializer_list<std::uint64_t> fields) {
  logged_event e;
  e.number = ++number_;
  e.time_ns = time_ns_;
  e.kind = kind;
  e.host = 0;
  e.fiber = fiber_;
  for (const std::uint64_t value : fields) e.fields[e.field_count++] = value;
  EXPECT_EQ(e.field_count, describe(kind).field_count) << describe(kind).name;
  for (check* c : by_kind_[static_cast<std::uint16_t>(kind)]) c->on_event(*world_, e);
  return *this;
}

}  // namespace holdfast::sim::streams
