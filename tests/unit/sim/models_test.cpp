// Proves that the pictures of the models under docs/ are those of the tables that run, and that a machine notices
// what its table does not allow.

#include <models/model.hpp>
#include <sim/kernel/world.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace holdfast::models {
namespace {

std::string read(const std::string& name) {
  const char* const source = std::getenv("HOLDFAST_SOURCE");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/docs/models/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(models, are_drawn_in_the_documentation_as_they_are) {
  for (model* const m : all()) {
    const std::string name(m->name());
    EXPECT_EQ(read(name + ".dot"), m->dot())
        << "docs/models/" << name << ".dot is stale: build/release/bin/holdfast-sim models --dot docs/models";
    const std::string picture = read(name + ".svg");
    for (const std::string_view state : m->states())
      EXPECT_NE(picture.find(">" + std::string(state) + "<"), std::string::npos)
          << "docs/models/" << name << ".svg does not show " << state;
  }
}

TEST(models, have_rows_that_say_what_they_do) {
  for (model* const m : all()) {
    EXPECT_FALSE(m->transitions().empty()) << m->name();
    for (const transition& row : m->transitions()) {
      EXPECT_FALSE(row.source.empty());
      EXPECT_FALSE(row.target.empty());
      EXPECT_FALSE(row.event.empty());
    }
    EXPECT_TRUE(m->dot().starts_with("// Generated"));
  }
}

class first_entry final : public sim::strategy {
 public:
  std::string_view name() const noexcept override { return "first"; }
  void begin(sim::world&) override {}
  std::uint32_t choose(sim::world&, const sim::choice_point&) override { return 0; }
};

// A model that is told events. One arena: pool 1, block 5, region and generation 7.
class told : public testing::Test {
 public:
  template <class... Fields>
  told& tell(event_id id, Fields... fields) {
    sim::logged_event e;
    e.kind = sim::kind_of(id);
    e.host = 0;
    e.fiber = fiber_;
    for (const std::uint64_t value : {static_cast<std::uint64_t>(fields)...}) e.fields[e.field_count++] = value;
    feed().on_event(world_, e);
    return *this;
  }
  told& on_fiber(std::uint32_t fiber) {
    fiber_ = fiber;
    return *this;
  }

 protected:
  explicit told(std::string_view name) : model_(find(name)), world_(sim::world_settings{}, strategy_) {
    world_.add_host("a");
    feed().begin(world_);
  }
  std::uint64_t taken(std::string_view source, std::string_view event) const {
    std::uint64_t sum = 0;
    for (const transition& row : model_.transitions())
      if (row.source == source && row.event == event) sum += row.taken;
    return sum;
  }
  static model& find(std::string_view name) {
    for (model* const m : all())
      if (m->name() == name) return *m;
    std::abort();
  }
  sim::check& feed() { return model_.feed(); }
  std::string broken() const { return world_.violated() ? world_.violated()->message : ""; }

  void map() {
    tell(event_id::growth_started, 1, 4096, 0, 64).tell(event_id::map_submitted, 5, 4096);
    tell(event_id::map_answered, 5, 7, 4096, 1);
  }
  void publish() { tell(event_id::arena_published, 7, 7, 4096, 4096, 0, 0); }

  model& model_;
  first_entry strategy_;
  sim::world world_;
  std::uint32_t fiber_ = 1;
};

class arena_model : public told {
 protected:
  arena_model() : told("arena") {}
};
class registration_model : public told {
 protected:
  registration_model() : told("registration") { tell(event_id::block_allocated, 5, 4096); }
};
class reservation_model : public told {
 protected:
  reservation_model() : told("reservation") {}
};
class span_model : public told {
 protected:
  span_model() : told("span") { tell(event_id::span_granted, 9, 7, 0, 1, 64, 0); }
};
class shutdown_model : public told {
 protected:
  shutdown_model() : told("shutdown") { tell(event_id::pool_opened, 1, 0, 0, 0, 0, 0); }
};

class endpoint_model : public told {
 protected:
  endpoint_model() : told("endpoint") {}
  // Endpoint 8 of connection 3. States and lanes in the order of the event.
  void move(int state, int lane = 0) { tell(event_id::endpoint_state, 8, 3, state, lane); }
};
class connection_model : public told {
 protected:
  connection_model() : told("connection") { tell(event_id::transport_state, 1, 0); }
  void move(int state) { tell(event_id::connection_state, 3, 100, 200, state); }
  void ready() {
    move(0);
    move(1);
    tell(event_id::hello_accepted, 3, 100, 200, 1);
    move(2);
  }
};
class operation_model : public told {
 protected:
  operation_model() : told("operation") { tell(event_id::transport_state, 1, 0); }
  void post() {
    tell(event_id::operation_accepted, 20, 100, 200, 64, 0).tell(event_id::buffer_lent, 9, 20, 200);
    tell(event_id::operation_submitted, 20, 3).tell(event_id::operation_posted, 20);
  }
  void end(int exit) { tell(event_id::operation_ended, 20, exit, 0); }
};
class transport_model : public told {
 protected:
  transport_model() : told("transport") { move(0); }
  void move(int state) { tell(event_id::transport_state, 1, state); }
};
class worker_model : public told {
 protected:
  worker_model() : told("worker") {
    tell(event_id::transport_state, 1, 0);
    move(0);
  }
  void move(int state, int queued = 0) { tell(event_id::progress_state, 1, state, queued); }
};

TEST_F(endpoint_model, accepts_a_forced_close_after_a_failure_and_a_parked_end) {
  const std::uint64_t before = taken("Parked", "worker destroyed");
  for (const int state : {0, 1, 3, 4}) move(state);
  for (const int state : {0, 2, 5}) move(state, 1);
  tell(event_id::worker_destroyed, 1);
  move(4, 1);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("Parked", "worker destroyed"), before + 1);
}

TEST_F(endpoint_model, refuses_a_forced_close_without_an_error_mode) {
  move(0, 1);
  move(3, 1);
  EXPECT_EQ(broken(), "endpoint 8 of host a met \"closed by force\" in Open");
}

TEST_F(endpoint_model, refuses_to_park_what_can_be_closed_by_force) {
  move(0);
  move(5);
  EXPECT_EQ(broken(), "endpoint 8 of host a met \"given up\" in Open");
}

TEST_F(endpoint_model, refuses_a_second_failure) {
  for (const int state : {0, 1, 1}) move(state);
  EXPECT_EQ(broken(), "endpoint 8 of host a met \"error handler\" in Failed");
}

TEST_F(connection_model, accepts_a_life_that_ends_with_a_loss) {
  ready();
  tell(event_id::operation_accepted, 20, 100, 200, 64, 0).tell(event_id::operation_submitted, 20, 3);
  move(4);
  tell(event_id::operation_orphaned, 20, 3, 64);
  move(6);
  EXPECT_EQ(broken(), "");
}

TEST_F(connection_model, refuses_an_end_while_somebody_waits) {
  ready();
  tell(event_id::operation_accepted, 20, 100, 200, 64, 0).tell(event_id::operation_submitted, 20, 3);
  move(3);
  move(6);
  EXPECT_EQ(broken(), "connection 3 of host a met \"ended\" in Draining");
}

TEST_F(connection_model, refuses_to_be_ready_without_a_hello) {
  for (const int state : {0, 1, 2}) move(state);
  EXPECT_EQ(broken(), "connection 3 of host a met \"ready\" in Greeting");
}

TEST_F(connection_model, refuses_a_second_loss) {
  ready();
  move(4);
  move(4);
  EXPECT_EQ(broken(), "connection 3 of host a met \"peer lost\" in Lost");
}

TEST_F(operation_model, accepts_an_orphan_whose_callback_comes_after_all) {
  post();
  tell(event_id::operation_orphaned, 20, 3, 64).tell(event_id::get_abandoned, 9);
  end(1);
  EXPECT_EQ(broken(), "");
}

TEST_F(operation_model, accepts_a_sweep_after_the_destruction_only) {
  post();
  tell(event_id::worker_destroyed, 1);
  end(3);
  EXPECT_EQ(broken(), "");
}

TEST_F(operation_model, refuses_a_sweep_before_the_destruction) {
  post();
  end(3);
  EXPECT_EQ(broken(), "operation 20 of host a met \"swept\" in Posted");
}

TEST_F(operation_model, refuses_a_second_exit) {
  post();
  end(1);
  end(1);
  EXPECT_EQ(broken(), "operation 20 of host a met \"callback\" in Ended");
}

TEST_F(transport_model, accepts_an_end_that_was_asked_for_and_one_that_was_not) {
  for (const int state : {2, 3, 4, 5, 6, 0, 2}) move(state);
  tell(event_id::transport_failed, 1);
  for (const int state : {3, 7}) move(state);
  EXPECT_EQ(broken(), "");
}

TEST_F(transport_model, refuses_a_sweep_of_a_worker_that_is_there) {
  for (const int state : {2, 3, 5}) move(state);
  EXPECT_EQ(broken(), "transport 1 of host a met \"worker destruction returned\" in Closing");
}

TEST_F(worker_model, accepts_sleep_wake_and_a_withdrawn_arming) {
  const std::uint64_t before = taken("Arming", "busy, or work after all");
  move(1);
  move(2);
  tell(event_id::progress_woke, 1, 2);
  move(1);
  tell(event_id::operation_submitted, 20, 3);
  move(1);
  tell(event_id::worker_destroyed, 1);
  move(3);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("Arming", "busy, or work after all"), before + 2);
}

TEST_F(worker_model, refuses_sleep_with_work_queued) {
  move(1);
  move(2, 1);
  EXPECT_EQ(broken(), "worker 1 of host a met \"armed, still nothing\" in Arming");
}

TEST_F(worker_model, refuses_a_call_of_the_library_from_sleep) {
  move(1);
  move(2);
  tell(event_id::operation_submitted, 20, 3);
  EXPECT_EQ(broken(), "worker 1 of host a met \"an operation is handed over\" in Sleeping");
}

TEST_F(worker_model, refuses_to_stop_before_its_worker_is_destroyed) {
  move(3);
  EXPECT_EQ(broken(), "worker 1 of host a met \"stopped\" in Working");
}

TEST_F(arena_model, counts_the_transitions_of_a_life) {
  const std::uint64_t before = taken("Retiring", "settled");
  map();
  tell(event_id::span_granted, 9, 7, 0, 1, 64, 0);
  publish();
  tell(event_id::span_released, 9, 7, 0, 1, 1);
  tell(event_id::arena_retired, 7, 7, 0, 0, 1);
  tell(event_id::unmap_submitted, 7, 7, 1);
  tell(event_id::unmap_answered, 7, 7, 0);
  tell(event_id::arena_settled, 7, 7, 4096, 0);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("Retiring", "settled"), before + 1);
}

TEST_F(arena_model, knows_that_a_failed_map_leaves_nothing) {
  tell(event_id::map_submitted, 5, 4096);
  tell(event_id::map_answered, 5, 0, 0, 0);
  EXPECT_EQ(broken(), "");
}

TEST_F(arena_model, refuses_a_settle_without_a_confirmation) {
  map();
  publish();
  tell(event_id::arena_retired, 7, 7, 0, 0, 1);
  tell(event_id::arena_settled, 7, 7, 4096, 0);
  EXPECT_EQ(broken(), "arena 5 of host a met \"settled\" in Retiring, Fresh");
}

TEST_F(arena_model, refuses_a_cut_from_a_retired_arena) {
  map();
  publish();
  tell(event_id::arena_retired, 7, 7, 0, 0, 1);
  tell(event_id::span_granted, 9, 7, 0, 1, 64, 0);
  EXPECT_EQ(broken(), "arena 5 of host a met \"span cut\" in Retiring, Fresh");
}

TEST_F(arena_model, lets_a_buffer_outlive_its_arena) {
  map();
  tell(event_id::span_granted, 9, 7, 0, 1, 64, 0);
  publish();
  tell(event_id::arena_retired, 7, 7, 1, 0, 1);
  tell(event_id::unmap_submitted, 7, 7, 1);
  tell(event_id::unmap_answered, 7, 7, 0);
  tell(event_id::arena_settled, 7, 7, 4096, 0);
  tell(event_id::span_released, 9, 7, 0, 1, 1);
  EXPECT_EQ(broken(), "");
}

TEST_F(registration_model, accepts_a_life_in_which_an_unmap_is_refused_once) {
  const std::uint64_t before = taken("Released", "pages freed");
  map();
  tell(event_id::unmap_submitted, 7, 7, 1).tell(event_id::unmap_answered, 7, 7, 1);
  tell(event_id::unmap_submitted, 7, 7, 2).tell(event_id::unmap_answered, 7, 7, 0);
  tell(event_id::arena_settled, 7, 7, 4096, 0).tell(event_id::block_freed, 5, 4096);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("Released", "pages freed"), before + 1);
}

TEST_F(registration_model, frees_pages_that_nobody_was_told_about) {
  tell(event_id::map_submitted, 5, 4096).tell(event_id::map_answered, 5, 0, 0, 0).tell(event_id::block_freed, 5, 4096);
  EXPECT_EQ(broken(), "");
}

TEST_F(registration_model, refuses_pages_that_go_under_a_map) {
  tell(event_id::map_submitted, 5, 4096).tell(event_id::block_freed, 5, 4096);
  EXPECT_EQ(broken(), "registration 5 of host a met \"pages freed\" in Mapping");
}

TEST_F(registration_model, refuses_pages_that_go_after_an_answer_that_proves_nothing) {
  map();
  tell(event_id::unmap_submitted, 7, 7, 1).tell(event_id::unmap_answered, 7, 7, 2).tell(event_id::block_freed, 5, 4096);
  EXPECT_EQ(broken(), "registration 5 of host a met \"pages freed\" in Unknown");
}

TEST_F(registration_model, refuses_a_second_unmap_after_an_answer_that_proves_nothing) {
  map();
  tell(event_id::unmap_submitted, 7, 7, 1)
      .tell(event_id::unmap_answered, 7, 7, 2)
      .tell(event_id::unmap_submitted, 7, 7, 2);
  EXPECT_EQ(broken(), "registration 5 of host a met \"unmap submitted\" in Unknown");
}

TEST_F(reservation_model, follows_what_is_raised_and_spent) {
  const std::uint64_t before = taken("Open", "raised");
  tell(event_id::ledger_reserved, 1, 5, 5).tell(event_id::ledger_reserved, 1, 7, 12);
  on_fiber(2).tell(event_id::ledger_raised, 1, 3, 15, 1).tell(event_id::ledger_committed, 1, 8, 15);
  on_fiber(1).tell(event_id::ledger_dropped, 1, 7, 8);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("Open", "raised"), before + 1);
}

TEST_F(reservation_model, refuses_a_second_drop) {
  tell(event_id::ledger_reserved, 1, 5, 5)
      .tell(event_id::ledger_dropped, 1, 5, 0)
      .tell(event_id::ledger_dropped, 1, 5, 0);
  EXPECT_EQ(broken(), "5 bytes of ledger 1 of host a met \"dropped\", and no open reservation has as many");
}

TEST_F(reservation_model, refuses_a_commit_of_more_than_was_reserved) {
  tell(event_id::ledger_reserved, 1, 5, 5).tell(event_id::ledger_committed, 1, 6, 6);
  EXPECT_EQ(broken(), "6 bytes of ledger 1 of host a met \"commit\", and no open reservation has as many");
}

TEST_F(span_model, accepts_a_transfer_whose_caller_gave_up) {
  const std::uint64_t before = taken("InFlightOnly", "transfer finished");
  tell(event_id::hold_taken, 9, 7, 1).tell(event_id::get_abandoned, 9).tell(event_id::hold_dropped, 9, 7, 0);
  tell(event_id::span_released, 9, 7, 0, 1, 1);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("InFlightOnly", "transfer finished"), before + 1);
}

TEST_F(span_model, accepts_a_late_end_of_a_transfer_of_unknown_fate) {
  tell(event_id::hold_taken, 9, 7, 1)
      .tell(event_id::span_quarantined, 9, 7, 1)
      .tell(event_id::span_discharged, 9, 7, 1);
  tell(event_id::hold_dropped, 9, 7, 0).tell(event_id::span_released, 9, 7, 0, 1, 1);
  EXPECT_EQ(broken(), "");
}

TEST_F(span_model, refuses_a_release_under_a_transfer) {
  tell(event_id::hold_taken, 9, 7, 1).tell(event_id::span_released, 9, 7, 0, 1, 1);
  EXPECT_EQ(broken(), "span 9 of host a met \"last owner gone\" in HeldInFlight");
}

TEST_F(span_model, refuses_a_release_from_quarantine) {
  tell(event_id::hold_taken, 9, 7, 1).tell(event_id::span_quarantined, 9, 7, 1).tell(event_id::hold_dropped, 9, 7, 0);
  tell(event_id::span_released, 9, 7, 0, 1, 1);
  EXPECT_EQ(broken(), "span 9 of host a met \"last owner gone\" in Quarantined");
}

TEST_F(shutdown_model, accepts_the_order_of_the_page) {
  const std::uint64_t before = taken("Sweeping", "arena taken by the sweep");
  map();
  publish();
  tell(event_id::reclaim_began, 1, 0, 0).tell(event_id::shutdown_started, 1, 1000);
  for (const int step : {0, 1, 2, 3}) tell(event_id::shutdown_step, 1, step, 1000);
  tell(event_id::arena_retired, 7, 7, 0, 0, 1).tell(event_id::shutdown_step, 1, 4, 1000);
  tell(event_id::shutdown_ended, 1, 0, 1, 0, 0, 0).tell(event_id::forced_release, 1, 1, 1, 4096);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("Sweeping", "arena taken by the sweep"), before + 1);
}

TEST_F(shutdown_model, refuses_to_publish_when_the_pool_is_closed) {
  map();
  tell(event_id::shutdown_started, 1, 1000);
  for (const int step : {0, 1, 2}) tell(event_id::shutdown_step, 1, step, 1000);
  publish();
  EXPECT_EQ(broken(), "shutdown 1 of host a met \"arena published\" in Closed");
}

TEST_F(shutdown_model, refuses_force_before_the_shutdown_returned) {
  tell(event_id::shutdown_started, 1, 1000).tell(event_id::forced_release, 1, 1, 0, 0);
  EXPECT_EQ(broken(), "shutdown 1 of host a met \"witness presented\" in Closing");
}

}  // namespace
}  // namespace holdfast::models
