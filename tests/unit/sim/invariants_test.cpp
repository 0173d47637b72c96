// Proves that every invariant can fail: for each, a stream of events that keeps the promise passes, and the same
// stream with one thing wrong names that invariant first. Events are written by hand, so that a check is tested
// without the core that it watches.

#include <properties/invariants/looks.hpp>
#include <properties/invariants/registry.hpp>
#include <sim/drivers/ucp_double.hpp>
#include <sim/kernel/world.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/mutex.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace holdfast::sim {
namespace {

using holdfast::event_id;

class first_entry final : public strategy {
 public:
  std::string_view name() const noexcept override { return "first"; }
  void begin(world&) override {}
  std::uint32_t choose(world&, const choice_point&) override { return 0; }
};

// A world without fibers that is told events.
class told {
 public:
  told() {
    forgiven();
    for (check* c : invariants::all_checks()) {
      c->begin(*world_);
      for (const event_kind kind : c->wants()) by_kind_[static_cast<std::uint16_t>(kind)].push_back(c);
    }
  }

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
  told& rest() {
    for (check* c : invariants::all_checks()) c->at_rest(*world_);
    return *this;
  }
  told& stuck() {
    for (check* c : invariants::all_checks()) c->at_stuck(*world_);
    return *this;
  }
  /// What was broken so far is forgotten; what happened is not.
  told& forgiven() {
    world_.reset();
    world_.emplace(world_settings{}, strategy_);
    world_->add_host("a");
    return *this;
  }
  /// Calls `body` on a fiber that holds a lock.
  told& under_a_lock(const std::function<void(told&)>& body) {
    world_->hosts().front()->spawn("main", [this, &body] {
      platform::mutex mutex(lock_ranks::base_ledger);
      scoped_lock lock(mutex);
      kernel_scope kernel;
      body(*this);
    });
    world_->run();
    return *this;
  }
  /// What a stage does when it looks.
  world& looking() { return *world_; }
  /// The invariant that was broken first, or "".
  std::string broken() const { return world_->violated() ? world_->violated()->invariant : ""; }
  std::string message() const { return world_->violated() ? world_->violated()->message : ""; }

 private:
  told& tell(event_kind kind, std::initializer_list<std::uint64_t> fields) {
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

  first_entry strategy_;
  std::optional<world> world_;
  std::map<std::uint16_t, std::vector<check*>> by_kind_;
  std::uint64_t number_ = 0;
  std::int64_t time_ns_ = 0;
  std::uint32_t fiber_ = 1;
};

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint32_t app = 1, progress = 2, registration = 3;

constexpr std::int64_t ms = 1'000'000, for_ever = INT64_MAX;
constexpr auto over_budget = static_cast<std::uint64_t>(error_code::budget_exceeded);

struct opening {
  std::int64_t reclaim_after_ns = for_ever;
  std::uint64_t retain = 0, retries = 3;
  bool pressure = true;
};
told& open(told& t, const opening& how) {
  return t.on_fiber(app).core(event_id::pool_opened, 1, how.reclaim_after_ns, how.retain, 5'000 * ms, how.retries,
                              how.pressure);
}
// An arena of 1 MiB over block 5 (pages 50), region and generation 7, registration 70; span 9 of 2 granules is cut
// before the publication.
told& build(told& t, bool dedicated = false) {
  t.on_fiber(app).core(event_id::ledger_opened, 1, 4 * mib).core(event_id::ledger_reserved, 1, mib, mib);
  t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
  t.core(event_id::growth_claimed, 1, 5000)
      .core(event_id::growth_started, 1, mib, dedicated, 5000)
      .core(event_id::map_submitted, 5, mib);
  t.on_fiber(registration).device(hardware_event::nic_registered, 70, 50, 0, mib);
  t.core(event_id::map_answered, 5, 7, mib, 1).core(event_id::ledger_committed, 1, mib, mib);
  t.core(event_id::span_granted, 9, 7, 0, 2, 5000, 254);
  t.core(event_id::arena_published, 7, 7, mib, mib, dedicated, 0).core(event_id::growth_ended, 1, 7, 1, dedicated);
  return t.on_fiber(app);
}
// A GET of 5000 bytes into span 9: operation 20, request 30, over connection 3.
told& start_get(told& t) {
  t.on_fiber(progress).core(event_id::transport_state, 1, 0).core(event_id::progress_state, 1, 0, 0);
  t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 2);
  t.on_fiber(app).core(event_id::hold_taken, 9, 7, 1).core(event_id::operation_accepted, 20, 100, 200, 5000, 0);
  t.core(event_id::buffer_lent, 9, 20, 200);
  t.on_fiber(progress).core(event_id::operation_submitted, 20, 3);
  t.device(hardware_event::driver_get_posted, 30, 50, 0, 5000, 1).core(event_id::operation_posted, 20);
  return t;
}
told& finish_get(told& t) {
  t.device(hardware_event::dma_write, 50, 0, 5000, 70, 30, 1);
  t.device(hardware_event::driver_get_completed, 30, 0, 5000).device(hardware_event::driver_callback, 30, 0);
  t.core(event_id::operation_ended, 20, 1, 0).core(event_id::hold_dropped, 9, 7, 0);
  t.core(event_id::buffer_returned, 9, 20, 1).core(event_id::waiter_told, 20, 1, 0, 5000);
  return t.on_fiber(app);
}
told& start_shutdown(told& t, std::int64_t deadline_ns = 1000) {
  t.on_fiber(app).core(event_id::shutdown_started, 1, deadline_ns).core(event_id::shutdown_step, 1, 0, deadline_ns);
  t.core(event_id::gate_closed, 2, 0).core(event_id::gate_drained, 2);
  t.core(event_id::gate_closed, 3, 0).core(event_id::gate_drained, 3).core(event_id::shutdown_step, 1, 1, deadline_ns);
  return t.core(event_id::shutdown_step, 1, 2, deadline_ns).core(event_id::shutdown_step, 1, 3, deadline_ns);
}
told& retire(told& t, std::uint64_t live = 0) { return t.core(event_id::arena_retired, 7, 7, live, 0, 1); }
told& give_back(told& t) { return t.on_fiber(app).core(event_id::span_released, 9, 7, 0, 2, 256); }
told& reclaim(told& t) { return t.core(event_id::arena_retired, 7, 7, 0, 0, 0); }
// A sweep that finds nothing.
told& sweep(told& t, std::uint64_t mode = 0) {
  return t.on_fiber(app).core(event_id::reclaim_began, 1, mode, 0).core(event_id::reclaim_ended, 1, mode, 0, 0);
}
told& unmap(told& t) {
  t.core(event_id::unmap_submitted, 7, 7, 1);
  t.on_fiber(registration)
      .device(hardware_event::nic_deregistered, 70, 50, mib)
      .core(event_id::unmap_answered, 7, 7, 0);
  return t;
}
told& settle(told& t) {
  t.core(event_id::arena_settled, 7, 7, mib, 0).core(event_id::ledger_released, 1, mib, 0);
  t.device(hardware_event::pages_returned, 50, mib).core(event_id::block_freed, 5, mib);
  return t.on_fiber(app);
}
// Span 9 of 512 bytes stays in quarantine 1 until operation 20 completes.
told& admit(told& t) {
  t.core(event_id::quarantine_entered, 1, 2, 9, 512, 4, 1 << 2);
  return t.core(event_id::quarantine_awaits, 1, 2, 9, 20, 0, 0);
}
using ucp_double::function;
told& call(told& t, std::uint32_t fiber, function what, std::uint64_t object) {
  return t.on_fiber(fiber).device(hardware_event::driver_call, what, object);
}
// Worker 1 of context 1 on the progress thread.
told& open_worker(told& t) {
  return call(call(t, progress, function::ucp_worker_create, 1), progress, function::ucp_worker_query, 1);
}
told& complete(told& t) { return t.core(event_id::quarantine_left, 1, 2, 9, 512, 2, 20); }
told& end_shutdown(told& t) {
  return t.on_fiber(app).core(event_id::shutdown_step, 1, 4, 0).core(event_id::shutdown_ended, 1, 1, 0, 0, 0, 0);
}

TEST(invariants, hold_over_a_whole_life) {
  told t;
  open(t, {.reclaim_after_ns = 20 * ms});
  build(t).core(event_id::reference_made, 9, 7, 0, 5000, 1);
  t.core(event_id::try_alloc_began, 1, 2 * mib)
      .core(event_id::try_alloc_ended, 1, 0, static_cast<std::uint64_t>(error_code::busy));
  start_get(t);
  finish_get(t);
  give_back(t);
  sweep(t.at(10 * ms));
  start_shutdown(t, 20 * ms);
  retire(t);
  unmap(t);
  settle(t);
  end_shutdown(t).rest();
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, hold_over_a_reclamation) {
  told t;
  open(t, {.reclaim_after_ns = 20 * ms});
  build(t);
  give_back(t);
  t.at(30 * ms).core(event_id::reclaim_began, 1, 0, 30 * ms);
  reclaim(t).core(event_id::reclaim_ended, 1, 0, 1, mib);
  unmap(t);
  settle(t);
  t.core(event_id::ledger_refused, 1, 5000, 0, 4 * mib);
  sweep(t, 2).core(event_id::pressure_relieved, 1, 1, 0);
  t.core(event_id::alloc_refused, 1, 1, 5000, over_budget)
      .core(event_id::alloc_refused, 1, 0, 5 * mib, over_budget)
      .rest();
  invariants::look_at_gauge(t.looking(), 0, 0);
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, hold_over_stays_in_quarantine) {
  told t;
  complete(admit(complete(admit(t))));
  t.core(event_id::quarantine_entered, 1, 3, 8, 64, 6, 1 << 4).core(event_id::quarantine_awaits, 1, 3, 8, 0, 0, 0);
  t.core(event_id::quarantine_fence_begun, 1, 3, 8, 5).core(event_id::quarantine_fence_begun, 1, 3, 8, 6);
  t.core(event_id::quarantine_left, 1, 3, 8, 64, 4, 5);
  admit(t).core(event_id::quarantine_abandoned, 1, 1, 512).rest();
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, a_get_that_the_probe_gave_up_may_end_after_the_look) {
  told t;
  t.core(event_id::transport_state, 1, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
  t.core(event_id::operation_submitted, 20, 3).core(event_id::operation_ended, 20, 0, 0);
  t.core(event_id::transport_capabilities, 1, 11301, 0, 0, 0);
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, have_names_sentences_and_no_twins) {
  std::set<std::string> ids;
  for (const check* c : invariants::all_checks()) {
    EXPECT_TRUE(ids.insert(std::string(c->id())).second) << c->id();
    EXPECT_FALSE(c->sentence().empty()) << c->id();
  }
  EXPECT_GT(ids.size(), 40u);
}

TEST(invariants, forget_the_last_run) {
  {
    told t;
    build(t);
    EXPECT_EQ(t.broken(), "");
  }
  told t;
  build(t);
  EXPECT_EQ(t.broken(), "") << t.message();
}

struct wrong {
  const char* invariant;
  const char* what;
  std::function<void(told&)> tell;
};

class every_invariant : public testing::TestWithParam<wrong> {};

TEST_P(every_invariant, names_what_is_wrong) {
  told t;
  GetParam().tell(t);
  EXPECT_EQ(t.broken(), GetParam().invariant) << GetParam().what << ": " << t.message();
}

const wrong all_wrong[] = {
    {"W-1", "a write that the device may not make",
     [](told& t) { t.device(hardware_event::dma_write, 50, 0, 64, 70, 30, 0); }},
    {"W-2", "pages back under a registration of nobody",
     [](told& t) {
       t.device(hardware_event::pages_owned, 50, mib).on_fiber(registration);
       t.device(hardware_event::nic_registered, 70, 50, 0, mib).device(hardware_event::pages_returned, 50, mib);
     }},
    {"W-3", "a write into somebody else's span",
     [](told& t) {
       build(t);
       t.device(hardware_event::dma_write, 50, 4096, 64, 70, 999, 1);
     }},
    {"W-4", "a transfer into an arena that was retired",
     [](told& t) {
       build(t);
       retire(t, 1).core(event_id::hold_taken, 9, 7, 1);
     }},
    {"W-5", "charged at rest",
     [](told& t) {
       t.core(event_id::ledger_opened, 1, mib).core(event_id::ledger_reserved, 1, 4096, 4096).rest();
     }},
    {"W-6", "an operation without an end",
     [](told& t) { t.core(event_id::operation_accepted, 20, 100, 200, 5000, 0).rest(); }},
    {"W-6", "an unmap without an answer, and nothing in quarantine",
     [](told& t) {
       t.core(event_id::map_submitted, 5, mib).core(event_id::map_answered, 5, 7, mib, 1);
       t.core(event_id::unmap_submitted, 7, 7, 1).forgiven().rest();
     }},
    {"W-6", "a step without an end", [](told& t) { t.device(hardware_event::op_began, 1).rest(); }},
    {"W-7", "a shutdown that does not return",
     [](told& t) {
       open(t, {});
       invariants::told_shutdown(t.looking(), 0, -1);
       t.stuck();
     }},
    {"W-7", "a registration that is left and reported as gone",
     [](told& t) {
       build(t);
       start_shutdown(t);
       retire(t, 1).core(event_id::unmap_submitted, 7, 7, 1).core(event_id::shutdown_ended, 1, 1, 0, 0, 0, 0);
     }},
    {"W-9", "success for bytes that did not land",
     [](told& t) {
       build(t);
       start_get(t);
       t.device(hardware_event::driver_get_completed, 30, 0, 5000).core(event_id::waiter_told, 20, 1, 0, 5000);
     }},
    {"W-9", "a confirmed unmap that was not done",
     [](told& t) {
       build(t);
       retire(t);
       t.core(event_id::unmap_submitted, 7, 7, 1).core(event_id::unmap_answered, 7, 7, 0);
     }},
    {"PM-I1", "pages back while a map may still come",
     [](told& t) {
       t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
       t.core(event_id::map_submitted, 5, mib).device(hardware_event::pages_returned, 50, mib);
     }},
    {"PM-I2", "a map over pages that are gone",
     [](told& t) {
       t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
       t.core(event_id::ledger_reserved, 1, mib, mib).device(hardware_event::pages_returned, 50, mib);
       t.device(hardware_event::nic_registered, 70, 50, 0, mib);
     }},
    {"PM-I3", "overlapping grants",
     [](told& t) {
       build(t);
       t.core(event_id::span_granted, 10, 7, 1, 1, 4096, 253);
     }},
    {"PM-I4", "a grant under a hold",
     [](told& t) {
       build(t);
       start_get(t);
       t.on_fiber(app).core(event_id::span_granted, 10, 7, 1, 1, 4096, 253);
     }},
    {"PM-I4", "a grant where the library still writes",
     [](told& t) {
       build(t);
       t.on_fiber(progress).device(hardware_event::driver_get_posted, 30, 50, 8192, 64, 1);
       t.on_fiber(app).core(event_id::span_granted, 10, 7, 2, 1, 4096, 253);
     }},
    {"PM-I5", "bytes past the buffer",
     [](told& t) {
       build(t);
       start_get(t);
       t.device(hardware_event::dma_write, 50, 4096, 1000, 70, 30, 1);
     }},
    {"PM-I6", "a grant after the unmap",
     [](told& t) {
       build(t);
       t.on_fiber(registration).device(hardware_event::nic_deregistered, 70, 50, mib).on_fiber(app);
       t.core(event_id::span_granted, 10, 7, 2, 1, 4096, 253);
     }},
    {"PM-I7", "a counter that is not the sum",
     [](told& t) { t.core(event_id::ledger_reserved, 1, 10, 11); }},
    {"BASE-Q1", "an entry that enters twice", [](told& t) { admit(t).core(event_id::quarantine_entered, 1, 2, 9, 512, 4, 4); }},
    {"BASE-Q1", "an entry that leaves twice",
     [](told& t) { complete(complete(admit(t))); }},
    {"BASE-Q1", "an entry that leaves with other bytes",
     [](told& t) { admit(t).core(event_id::quarantine_left, 1, 2, 9, 511, 2, 20); }},
    {"BASE-Q1", "an entry that leaves another quarantine",
     [](told& t) { admit(t).core(event_id::quarantine_left, 2, 2, 9, 512, 2, 20); }},
    {"BASE-Q1", "an entry that leaves after it was given up",
     [](told& t) { complete(admit(t).core(event_id::quarantine_abandoned, 1, 1, 512)); }},
    {"BASE-Q2", "an entry that leaves on nothing",
     [](told& t) { admit(t).core(event_id::quarantine_left, 1, 2, 9, 512, 0, 0); }},
    {"BASE-Q2", "a span that leaves on an answer",
     [](told& t) { admit(t).core(event_id::quarantine_left, 1, 2, 9, 512, 1, 9); }},
    {"BASE-Q2", "a span that leaves on the completion of another operation",
     [](told& t) { admit(t).core(event_id::quarantine_left, 1, 2, 9, 512, 2, 21); }},
    {"BASE-Q2", "fences that are begun for a span",
     [](told& t) { admit(t).core(event_id::quarantine_fence_begun, 1, 2, 9, 5); }},
    {"BASE-Q3", "fences that were begun in an earlier stay",
     [](told& t) {
       for (int stay = 0; stay < 2; ++stay) {
         t.core(event_id::quarantine_entered, 1, 3, 8, 64, 6, 1 << 4).core(event_id::quarantine_awaits, 1, 3, 8, 0, 0, 0);
         if (stay == 0) t.core(event_id::quarantine_fence_begun, 1, 3, 8, 5);
         t.core(event_id::quarantine_left, 1, 3, 8, 64, 4, 5);
       }
     }},
    {"BASE-Q4", "a quarantine that gives up other than it has",
     [](told& t) { admit(t).core(event_id::quarantine_abandoned, 1, 1, 511); }},
    {"PM-I8", "a reservation over the ceiling",
     [](told& t) { t.core(event_id::ledger_opened, 1, mib).core(event_id::ledger_reserved, 1, 2 * mib, 2 * mib); }},
    {"PM-I8", "more registered than charged",
     [](told& t) {
       t.core(event_id::ledger_opened, 1, mib).device(hardware_event::pages_owned, 50, mib);
       t.core(event_id::block_allocated, 5, mib).device(hardware_event::nic_registered, 70, 50, 0, mib);
     }},
    {"PM-I9", "a second settle",
     [](told& t) {
       build(t);
       t.core(event_id::span_released, 9, 7, 0, 2, 256);
       retire(t);
       unmap(t);
       settle(t);
       t.core(event_id::arena_settled, 7, 7, mib, 0);
     }},
    {"PM-I10", "a second retirement",
     [](told& t) {
       build(t);
       retire(t);
       retire(t);
     }},
    {"PM-I10", "an arena that was built and is nowhere",
     [](told& t) { t.core(event_id::growth_ended, 1, 8, 1, 0); }},
    {"PM-I11", "a second unmap",
     [](told& t) {
       build(t);
       retire(t);
       t.core(event_id::unmap_submitted, 7, 7, 1).core(event_id::unmap_submitted, 7, 7, 2);
     }},
    {"PM-I12", "an arena reclaimed under a span",
     [](told& t) {
       build(t);
       reclaim(t);
     }},
    {"PM-I12", "a grant between the sweep and its unmap",
     [](told& t) {
       build(t);
       give_back(t);
       reclaim(t).core(event_id::span_granted, 10, 7, 0, 1, 64, 255).forgiven();
       t.core(event_id::unmap_submitted, 7, 7, 1);
     }},
    {"PM-I13", "an arena reclaimed too early",
     [](told& t) {
       build(open(t, {.reclaim_after_ns = 20 * ms}));
       give_back(t);
       reclaim(t.at(20 * ms - 1));
     }},
    {"PM-I13", "an arena reclaimed that was to stay warm",
     [](told& t) {
       build(open(t, {.reclaim_after_ns = 20 * ms, .retain = 1}));
       give_back(t);
       reclaim(t.at(30 * ms));
     }},
    {"PM-I14", "an arena reclaimed that may idle for ever",
     [](told& t) {
       build(open(t, {}));
       give_back(t);
       reclaim(t);
     }},
    {"PM-I14", "a sweep under pressure that nobody was refused for", [](told& t) { sweep(open(t, {}), 2); }},
    {"PM-I15", "a grant from somebody's own arena",
     [](told& t) {
       build(open(t, {}), true);
       t.core(event_id::span_granted, 10, 7, 2, 1, 64, 253);
     }},
    {"PM-I15", "a sweep that passes an empty dedicated arena by",
     [](told& t) {
       build(open(t, {}), true);
       give_back(t);
       sweep(t);
     }},
    {"PM-I15", "a dedicated arena whose unmap waits",
     [](told& t) {
       build(open(t, {}), true);
       give_back(t);
       reclaim(t).at(1).core(event_id::unmap_submitted, 7, 7, 1);
     }},
    {"PM-I15", "a reclaimed arena that is never unmapped",
     [](told& t) {
       t.core(event_id::arena_published, 7, 7, mib, 0, 1, 1).forgiven();
       reclaim(t).rest();
     }},
    {"PM-I16", "two growths at once",
     [](told& t) { t.core(event_id::growth_started, 1, mib, 0, 5000).core(event_id::growth_started, 1, mib, 0, 5000); }},
    {"PM-I16", "a growth although there was room",
     [](told& t) {
       build(t);
       t.core(event_id::growth_claimed, 1, 5000).core(event_id::growth_started, 1, mib, 0, 5000);
     }},
    {"PM-I16", "a pooled arena smaller than its turn",
     [](told& t) {
       open(t, {});
       invariants::told_arena_sizes(t.looking(), 0, mib / 2, 2 * mib, 4096);
       t.core(event_id::growth_claimed, 1, 5000).core(event_id::growth_started, 1, 8192, 0, 5000);
     }},
    {"PM-I16", "a pooled arena above the ceiling",
     [](told& t) {
       open(t, {});
       invariants::told_arena_sizes(t.looking(), 0, mib / 2, mib / 2, 4096);
       t.core(event_id::growth_claimed, 1, 5000).core(event_id::growth_started, 1, mib, 0, 5000);
     }},
    {"PM-I17", "try_alloc maps",
     [](told& t) { t.core(event_id::try_alloc_began, 1, 64).core(event_id::growth_started, 1, mib, 0, 5000); }},
    {"PM-I17", "try_alloc fetches",
     [](told& t) { t.core(event_id::try_alloc_began, 1, 64).core(event_id::operation_accepted, 20, 100, 200, 64, 0); }},
    {"PM-I18", "a block that is never given back",
     [](told& t) {
       build(t);
       t.core(event_id::span_released, 9, 7, 0, 2, 256);
       retire(t);
       unmap(t);
       t.core(event_id::arena_settled, 7, 7, mib, 0).core(event_id::ledger_released, 1, mib, 0).rest();
     }},
    {"PM-I19", "a settle without an answer",
     [](told& t) {
       build(t);
       retire(t);
       t.core(event_id::arena_settled, 7, 7, mib, 0);
     }},
    {"PM-I19", "a charge that comes back before its registration went",
     [](told& t) {
       build(t);
       t.on_fiber(registration).device(hardware_event::nic_deregistered, 70, 50, mib).on_fiber(app);
       t.core(event_id::ledger_released, 1, mib, 0);
     }},
    {"PM-I20", "force without a witness",
     [](told& t) { t.core(event_id::forced_release, 1, 1, 0, 0); }},
    {"PM-I20", "force with the witness of another transport",
     [](told& t) { t.core(event_id::witness_issued, 1, 0).core(event_id::forced_release, 1, 2, 0, 0); }},
    {"PM-I21", "a late shutdown",
     [](told& t) { start_shutdown(t, 1000).at(1001).core(event_id::shutdown_ended, 1, 0, 0, 0, 0, 0); }},
    {"PM-I21", "a shutdown that nobody ends", [](told& t) { start_shutdown(t).stuck(); }},
    {"PM-I21", "a drain that nobody wakes",
     [](told& t) { t.core(event_id::gate_closed, 1, 1).device(hardware_event::op_began, 1).stuck(); }},
    {"PM-I22", "an unmap under a GET",
     [](told& t) {
       build(t);
       start_get(t);
       start_shutdown(t);
       retire(t, 1);
       t.core(event_id::unmap_submitted, 7, 7, 1);
     }},
    {"PM-I23", "a shutdown that waits for a buffer",
     [](told& t) {
       build(t);
       start_shutdown(t);
       retire(t, 1);
       t.at(500).core(event_id::unmap_submitted, 7, 7, 1);
     }},
    {"PM-I23", "a shutdown that waits for a buffer for ever",
     [](told& t) {
       build(t);
       start_shutdown(t);
       retire(t, 1).stuck();
     }},
    {"PM-I24", "a growth after the drain",
     [](told& t) {
       start_shutdown(t);
       build(t);
     }},
    {"PM-I24", "a GET after the drain",
     [](told& t) {
       build(t);
       start_shutdown(t);
       t.core(event_id::buffer_lent, 9, 0, 0);
     }},
    {"PM-I24", "an arena published after the sweep",
     [](told& t) {
       build(t);
       t.core(event_id::ledger_reserved, 1, mib, 2 * mib).device(hardware_event::pages_owned, 60, mib);
       t.core(event_id::block_allocated, 6, mib).core(event_id::map_submitted, 6, mib);
       start_shutdown(t).on_fiber(registration).device(hardware_event::nic_registered, 80, 60, 0, mib);
       t.core(event_id::map_answered, 6, 8, mib, 1).core(event_id::ledger_committed, 1, mib, 2 * mib);
       t.core(event_id::arena_published, 8, 8, mib, mib, 0, 1);
     }},
    {"PM-I28", "a buffer that comes back while it is written",
     [](told& t) {
       build(t);
       start_get(t);
       t.core(event_id::buffer_returned, 9, 20, 0);
     }},
    {"PM-I28", "a reference to a buffer that is lent",
     [](told& t) {
       build(t);
       start_get(t);
       t.on_fiber(app).core(event_id::reference_made, 9, 7, 0, 5000, 1);
     }},
    {"PM-I29", "a hold dropped twice",
     [](told& t) {
       build(t);
       start_get(t);
       finish_get(t);
       t.core(event_id::hold_dropped, 9, 7, 0);
     }},
    {"PM-I29", "a hold that outlives its request",
     [](told& t) {
       build(t);
       start_get(t);
       t.device(hardware_event::driver_get_completed, 30, 0, 5000).device(hardware_event::driver_callback, 30, 0);
       t.core(event_id::operation_ended, 20, 1, 0).stuck();
     }},
    {"PM-I29", "a GET without a hold",
     [](told& t) {
       build(t);
       t.core(event_id::buffer_lent, 9, 20, 200).core(event_id::operation_accepted, 20, 100, 200, 5000, 0);
       t.on_fiber(progress).core(event_id::operation_submitted, 20, 3);
       t.device(hardware_event::driver_get_posted, 30, 50, 0, 5000, 1);
     }},
    {"PM-I30", "a generation twice",
     [](told& t) {
       build(t);
       retire(t);
       unmap(t);
       t.core(event_id::map_submitted, 6, mib).core(event_id::map_answered, 6, 7, mib, 1);
     }},
    {"PM-I30", "a reference to an arena that is out of service",
     [](told& t) {
       build(t);
       retire(t, 1).core(event_id::reference_made, 9, 7, 0, 5000, 1);
     }},
    {"PM-I31", "an arena published before its request was cut",
     [](told& t) {
       t.core(event_id::ledger_reserved, 1, mib, mib).device(hardware_event::pages_owned, 50, mib);
       t.core(event_id::block_allocated, 5, mib).core(event_id::map_submitted, 5, mib).on_fiber(registration);
       t.device(hardware_event::nic_registered, 70, 50, 0, mib).core(event_id::map_answered, 5, 7, mib, 1);
       t.core(event_id::ledger_committed, 1, mib, mib).core(event_id::arena_published, 7, 7, mib, mib, 0, 0);
     }},
    {"PM-I32", "a refusal although there is room",
     [](told& t) {
       build(t);
       t.core(event_id::try_alloc_began, 1, 64).core(event_id::try_alloc_ended, 1, 0, static_cast<std::uint64_t>(error_code::busy));
     }},
    {"PM-I33", "a buffer longer than its granules",
     [](told& t) {
       build(t);
       t.core(event_id::span_granted, 10, 7, 2, 1, 4097, 253);
     }},
    {"PM-I34", "quarantine left without a fence",
     [](told& t) {
       build(t);
       start_get(t);
       t.core(event_id::span_quarantined, 9, 7, 2).core(event_id::span_released, 9, 7, 0, 2, 256);
     }},
    {"PM-I35", "a growth that outlives its cancellation",
     [](told& t) {
       open(t, {}).device(hardware_event::cancel_fired, 1).core(event_id::growth_started, 1, mib, 0, 5000).rest();
     }},
    {"PM-I36", "a gauge that shows something else",
     [](told& t) {
       build(t);
       invariants::look_at_gauge(t.looking(), 0, mib - 1);
     }},
    {"PM-I37", "a cancellation that finds a lock held",
     [](told& t) { t.under_a_lock([](told& on) { on.device(hardware_event::cancel_fired, 1); }); }},
    {"PM-I37", "pages that go back under a lock",
     [](told& t) { t.under_a_lock([](told& on) { on.device(hardware_event::pages_returned, 50, mib); }); }},
    {"PM-I38", "a sweep that passes an old arena by",
     [](told& t) {
       build(open(t, {.reclaim_after_ns = 20 * ms}));
       give_back(t);
       sweep(t.at(40 * ms + 1));
     }},
    {"PM-I38", "an arena that stayed until the shutdown",
     [](told& t) {
       build(open(t, {.reclaim_after_ns = 4 * ms}));
       give_back(t);
       start_shutdown(t.at(24 * ms + 1), 100 * ms);
       retire(t);
     }},
    {"PM-I39", "a swept arena that nobody counts",
     [](told& t) {
       build(t);
       start_shutdown(t);
       retire(t, 1);
       t.core(event_id::shutdown_ended, 1, 1, 0, 0, 0, 0);
     }},
    {"PM-I40", "a span given back twice",
     [](told& t) {
       build(t);
       t.core(event_id::span_released, 9, 7, 0, 2, 256).core(event_id::span_released, 9, 7, 0, 2, 256);
     }},
    {"PM-I40", "a span outside its arena",
     [](told& t) {
       build(t);
       t.core(event_id::span_granted, 10, 7, 256, 1, 4096, 253);
     }},
    {"PM-I40", "granules that are in two places",
     [](told& t) {
       build(t);
       t.core(event_id::span_granted, 10, 7, 2, 1, 4096, 254);
     }},
    {"PM-I43", "a refusal without a sweep",
     [](told& t) { open(t, {}).core(event_id::alloc_refused, 1, 0, 5000, over_budget); }},
    {"PM-I43", "a refusal after somebody else's sweep",
     [](told& t) {
       sweep(open(t, {}).core(event_id::ledger_refused, 1, 5000, 0, 4 * mib), 2).core(event_id::pressure_relieved, 1, 1, 0);
       for (int i = 0; i < 2; ++i) t.core(event_id::alloc_refused, 1, 1, 5000, over_budget);
     }},
    {"PM-I43", "a relief without a sweep",
     [](told& t) {
       open(t, {}).core(event_id::pressure_relieved, 1, 1, 0).core(event_id::alloc_refused, 1, 1, 5000, over_budget);
     }},
    {"PM-I45", "a reference of another life",
     [](told& t) {
       build(t);
       t.core(event_id::hold_taken, 9, 7, 1).core(event_id::operation_accepted, 20, 100, 200, 5000, 0);
       t.core(event_id::buffer_lent, 9, 20, 201);
     }},
    {"PM-I46", "a refused unmap that is asked for too often",
     [](told& t) {
       build(open(t, {.retries = 1}));
       retire(t, 1);
       for (int attempt = 1; attempt <= 3; ++attempt)
         t.core(event_id::unmap_submitted, 7, 7, attempt).core(event_id::unmap_answered, 7, 7, 1);
     }},
    {"PM-I46", "an unmap that is asked for again and was not refused",
     [](told& t) {
       build(t);
       retire(t, 1).core(event_id::unmap_submitted, 7, 7, 1).core(event_id::unmap_answered, 7, 7, 2);
       t.core(event_id::unmap_retrying, 7, 7, 2);
     }},
    {"PM-I46", "an unmap of an id that no map gave",
     [](told& t) { t.core(event_id::unmap_submitted, 8, 8, 1); }},
    {"PM-I47", "an adopted arena with a span",
     [](told& t) {
       t.core(event_id::ledger_reserved, 1, mib, mib).device(hardware_event::pages_owned, 50, mib);
       t.core(event_id::block_allocated, 5, mib).core(event_id::map_submitted, 5, mib).on_fiber(registration);
       t.device(hardware_event::nic_registered, 70, 50, 0, mib).core(event_id::map_answered, 5, 7, mib, 1);
       t.core(event_id::ledger_committed, 1, mib, mib).core(event_id::span_granted, 9, 7, 0, 2, 5000, 254);
       t.core(event_id::arena_published, 7, 7, mib, mib, 0, 1);
     }},
    {"PM-I49", "a reference to bytes past the buffer",
     [](told& t) { build(t).core(event_id::reference_made, 9, 7, 0, 5001, 1); }},
    {"PM-I49", "a reference to somebody else's bytes",
     [](told& t) { build(t).core(event_id::reference_made, 9, 7, 4096, 904, 1); }},
    {"PM-I50", "a reservation after the books broke",
     [](told& t) {
       t.core(event_id::ledger_opened, 1, mib).core(event_id::ledger_corrupt, 1, 64, 0).forgiven();
       t.core(event_id::ledger_reserved, 1, 64, 64);
     }},
    {"PM-I51", "a snapshot that counts a span it does not list",
     [](told& t) {
       pinned::memory_snapshot taken;
       taken.pool.live_spans = 1;
       invariants::look_at_snapshot(t.looking(), 0, taken);
     }},
    {"PM-I53", "a map on the progress thread",
     [](told& t) {
       t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
       t.device(hardware_event::nic_registered, 70, 50, 0, mib);
     }},
    {"TP-I1", "two exits",
     [](told& t) {
       build(t);
       start_get(t);
       finish_get(t);
       t.core(event_id::operation_ended, 20, 3, 0);
     }},
    {"TP-I1", "a record that survives the teardown",
     [](told& t) {
       t.core(event_id::operation_accepted, 20, 100, 200, 5000, 0).core(event_id::witness_issued, 1, 0);
     }},
    {"TP-I1", "a call that nobody answers",
     [](told& t) {
       t.core(event_id::transport_state, 1, 6);
       invariants::told_call(t.looking(), 0, true);
       t.stuck();
     }},
    {"TP-I2", "a waiter told twice",
     [](told& t) {
       build(t);
       start_get(t);
       finish_get(t);
       t.core(event_id::waiter_told, 20, 0, 9, 0);
     }},
    {"TP-I3", "a hold dropped under a posted GET",
     [](told& t) {
       build(t);
       start_get(t);
       t.core(event_id::hold_dropped, 9, 7, 0);
     }},
    {"TP-I4", "a sweep before the destruction",
     [](told& t) { t.core(event_id::table_swept, 1, 1); }},
    {"TP-I5", "a GET posted by the application's thread",
     [](told& t) {
       t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
       t.on_fiber(app).device(hardware_event::driver_get_posted, 30, 50, 0, 64, 1);
     }},
    {"TP-I6", "a key destroyed under an operation",
     [](told& t) {
       t.core(event_id::key_state, 4, 3, 7, 0).core(event_id::key_used, 4, 20).core(event_id::key_state, 4, 3, 7, 2);
     }},
    {"TP-I6", "an endpoint closed before its idle key",
     [](told& t) {
       t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::key_state, 4, 3, 7, 0).core(event_id::endpoint_state, 8, 3, 2, 0);
     }},
    {"TP-I6", "an endpoint used after its end",
     [](told& t) {
       t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 3, 0);
       t.core(event_id::operation_accepted, 20, 100, 200, 64, 0).core(event_id::operation_submitted, 20, 3);
     }},
    {"TP-I7", "sleep with work queued",
     [](told& t) { t.core(event_id::progress_state, 1, 2, 1); }},
    {"TP-I7", "work that waited for a wake",
     [](told& t) {
       t.core(event_id::progress_state, 1, 2, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
       t.at(5).core(event_id::progress_woke, 1, 4);
     }},
    {"TP-I9", "ready without a hello",
     [](told& t) { t.core(event_id::connection_state, 3, 100, 200, 2); }},
    {"TP-I10", "an operation for another life",
     [](told& t) {
       t.core(event_id::hello_accepted, 3, 100, 201, 1).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
       t.core(event_id::operation_submitted, 20, 3);
     }},
    {"TP-I11", "two ready connections to one peer",
     [](told& t) {
       for (const int connection : {3, 4})
         t.core(event_id::hello_accepted, connection, 100, 200, 1).core(event_id::connection_state, connection, 100, 200, 2);
     }},
    {"TP-I11", "two that met and have no connection",
     [](told& t) { invariants::look_at_meeting(t.looking(), 0, false); }},
    {"TP-I12", "submitted after the loss",
     [](told& t) {
       t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 4);
       t.core(event_id::operation_accepted, 20, 100, 200, 64, 0).core(event_id::operation_submitted, 20, 3);
     }},
    {"TP-I14", "a copy over the limit",
     [](told& t) { t.core(event_id::message_copied, 3, 65, 64); }},
    {"TP-I19", "a loss reported twice",
     [](told& t) { t.core(event_id::peer_lost, 100, 200, 3, 0, 0).core(event_id::peer_lost, 100, 200, 3, 0, 0); }},
    {"TP-I20", "a teardown that ends a nanosecond late",
     [](told& t) {
       t.core(event_id::transport_state, 1, 3);
       invariants::told_shutdown(t.looking(), 0, 10 * ms);
       t.at(10 * ms + 1).core(event_id::teardown_hung, 1, 0, 0);
     }},
    {"TP-I20", "a witness before the end",
     [](told& t) {
       t.core(event_id::progress_state, 1, 0, 0).core(event_id::witness_issued, 1, 0);
     }},
    {"TP-I29", "an absent backend with a registration",
     [](told& t) {
       t.on_fiber(registration).device(hardware_event::nic_registered, 70, 50, 0, mib);
       t.core(event_id::transport_state, 1, 1);
     }},
    {"TP-I1", "a callback after the exit",
     [](told& t) {
       build(t);
       start_get(t);
       finish_get(t);
       t.on_fiber(progress).device(hardware_event::driver_callback, 30, 0);
     }},
    {"TP-I3", "a record that ends while the library has its request",
     [](told& t) {
       build(open_worker(t));
       start_get(t);
       open_worker(t).core(event_id::operation_orphaned, 20, 3, 5000).core(event_id::operation_ended, 20, 1, 0);
     }},
    {"TP-I4", "a sweep after the first of two destructions",
     [](told& t) {
       call(open_worker(t), progress, function::ucp_worker_query, 2);
       t.device(hardware_event::driver_worker_destroyed, 1, 0).core(event_id::table_swept, 1, 1);
     }},
    {"TP-I5", "a map by the progress thread",
     [](told& t) { call(open_worker(t), progress, function::ucp_mem_map, 1); }},
    {"TP-I5", "a worker that two threads use",
     [](told& t) { call(open_worker(t), app, function::ucp_worker_progress, 1); }},
    {"TP-I5", "a key destroyed by a thread that has no worker",
     [](told& t) { call(open_worker(t), app, function::ucp_rkey_destroy, 1); }},
    {"TP-I6", "a GET on an endpoint of the library that was closed",
     [](told& t) {
       call(call(open_worker(t), progress, function::ucp_ep_close_nbx, 4), progress, function::ucp_get_nbx, 4);
     }},
    {"TP-I6", "an endpoint closed a second time",
     [](told& t) {
       t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 2, 0);
       t.core(event_id::endpoint_state, 8, 3, 3, 0);
     }},
    {"TP-I7", "work that lies in the queue when nothing can run any more",
     [](told& t) {
       t.core(event_id::progress_state, 1, 2, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 0).stuck();
     }},
    {"TP-I8", "wakes with nothing to do",
     [](told& t) {
       for (int i = 0; i < 1200; ++i) t.core(event_id::progress_woke, 1, 1);
     }},
    {"TP-I11", "an incarnation that was declared dead",
     [](told& t) {
       t.core(event_id::peer_declared_dead, 100, 200, 0).core(event_id::hello_accepted, 3, 100, 200, 1);
       t.core(event_id::connection_state, 3, 100, 200, 2);
     }},
    {"TP-I15", "a submission that waits for a flood to end",
     [](told& t) {
       t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
       invariants::told_transport(t.looking(), 0, 1, 0, 16);
       t.on_fiber(app).device(hardware_event::op_began, 1);
       t.core(event_id::operation_accepted, 20, 100, 200, 5000, 0).device(hardware_event::op_ended, 1, 1, 0);
       t.on_fiber(progress);
       for (int call = 0; call < 7; ++call)
         t.device(hardware_event::driver_call, static_cast<std::uint64_t>(ucp_double::function::ucp_worker_progress), 1);
     }},
    {"TP-I18", "an attempt that lasts an iteration and a nanosecond too long",
     [](told& t) {
       t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
       invariants::told_transport(t.looking(), 0, 16, 10 * ms, 16);
       t.core(event_id::connection_state, 3, 0, 0, 0).at(11 * ms + 1).core(event_id::connection_state, 3, 0, 0, 7);
     }},
    {"TP-I18", "an endpoint through memory that outlives its connection",
     [](told& t) {
       t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 9, 3, 0, 1);
       t.core(event_id::endpoint_state, 8, 3, 3, 0);
     }},
    {"TP-I18", "a transfer that is forgotten on a parked endpoint",
     [](told& t) {
       build(t).device(hardware_event::driver_lane_shared, 1).core(event_id::endpoint_state, 8, 3, 0, 1);
       start_get(t).core(event_id::endpoint_state, 8, 3, 5, 1);
     }},
    {"TP-I18", "a transfer that waits for a closed connection",
     [](told& t) {
       build(t);
       start_get(t).core(event_id::connection_state, 3, 100, 200, 6);
     }},
    {"TP-I18", "a transfer that waits for a lost peer for ever",
     [](told& t) {
       build(t);
       start_get(t).core(event_id::connection_state, 3, 100, 200, 4).stuck();
     }},
    {"TP-I18", "an attempt without an end",
     [](told& t) { t.core(event_id::connection_state, 3, 0, 0, 0).rest(); }},
    {"TP-I18", "an orphan's waiter that was not told",
     [](told& t) {
       build(t);
       start_get(t).core(event_id::operation_orphaned, 20, 3, 5000).device(hardware_event::driver_get_completed, 30, 0, 5000);
       t.device(hardware_event::driver_callback, 30, 0).core(event_id::operation_ended, 20, 1, 0);
       t.core(event_id::hold_dropped, 9, 7, 0).core(event_id::buffer_returned, 9, 20, 1);
       give_back(t).forgiven().rest();
     }},
    {"TP-I19", "a failure told twice",
     [](told& t) { t.core(event_id::transport_failed, 1).core(event_id::transport_failed, 1); }},
    {"TP-I20", "a second witness",
     [](told& t) {
       t.core(event_id::witness_issued, 1, 0).core(event_id::witness_issued, 1, 0);
     }},
    {"TP-I20", "a teardown without an end",
     [](told& t) { t.core(event_id::transport_state, 1, 3).rest(); }},
    {"TP-I20", "a witness with one of two workers",
     [](told& t) {
       call(open_worker(t), progress, function::ucp_worker_query, 2).core(event_id::progress_state, 1, 0, 0);
       t.device(hardware_event::driver_worker_destroyed, 1, 0).device(hardware_event::driver_context_closed, 1, 0);
       t.core(event_id::witness_issued, 1, 0);
     }},
    {"TP-I26", "pages unmapped that a late reader may ask for",
     [](told& t) {
       build(open_worker(t));
       give_back(t);
       start_shutdown(t);
       retire(t);
       unmap(t).core(event_id::arena_settled, 7, 7, mib, 0).core(event_id::ledger_released, 1, mib, 0);
       t.device(hardware_event::pages_returned, 50, mib);
     }},
    {"TP-I27", "a connection that serves a revoked peer",
     [](told& t) {
       t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 2);
       t.core(event_id::peer_revoked, 100, 200, 1, 0, 0);
     }},
    {"TP-I27", "a revocation by flush that says that reads stop",
     [](told& t) {
       t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 5);
       t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 2, 0);
       t.core(event_id::peer_revoked, 100, 200, 1, 0, 1);
     }},
    {"TP-I29", "an absent backend with a worker",
     [](told& t) { open_worker(t).core(event_id::transport_state, 1, 1); }},
    {"TP-I29", "a call of an absent backend",
     [](told& t) { call(t.core(event_id::transport_state, 1, 1), app, function::ucp_cleanup, 1); }},
    {"TP-I29", "a context that ends before its worker",
     [](told& t) {
       t.on_fiber(progress).device(hardware_event::driver_call, static_cast<std::uint64_t>(ucp_double::function::ucp_worker_query), 1);
       t.on_fiber(registration).device(hardware_event::driver_call, static_cast<std::uint64_t>(ucp_double::function::ucp_cleanup), 1);
     }},
    {"TP-I30", "a call of the library under a lock",
     [](told& t) {
       t.under_a_lock([](told& locked) { call(locked, progress, function::ucp_worker_progress, 1); });
     }},
    {"TP-I30", "a program that runs on the progress thread",
     [](told& t) {
       t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0).device(hardware_event::op_began, 1);
     }},
    {"TP-I31", "a GET that is said to work and never did",
     [](told& t) { t.core(event_id::transport_capabilities, 1, 11301, 1 << 1, 0, 0); }},
    {"TP-I31", "another version than the library's",
     [](told& t) { t.core(event_id::transport_capabilities, 1, 11302, 0, 0, 0); }},
    {"TP-I31", "a GET inside its call that none was",
     [](told& t) { t.core(event_id::transport_capabilities, 1, 11301, 1 << 6, 0, 0); }},
    {"TP-I31", "a GET that is reported absent",
     [](told& t) {
       t.core(event_id::transport_capabilities, 1, 11301, 0, 0, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
     }},
    {"TP-I31", "shared memory that is reported absent",
     [](told& t) {
       t.core(event_id::transport_capabilities, 1, 11301, 0, 0, 0).core(event_id::endpoint_state, 8, 3, 0, 1);
     }},
    {"TP-I32", "a lock that two processes use",
     [](told& t) { t.device(hardware_event::object_shared, 1, 0, 1); }},
    {"TP-I32", "a handle that two processes use",
     [](told& t) { t.device(hardware_event::driver_handle_foreign, 1, 0); }},
    {"TP-I32", "a context that two transports use",
     [](told& t) { call(open_worker(t), app, function::ucp_worker_create, 1).rest(); }},
    {"TP-D52", "an endpoint of an ended life that the next takes over",
     [](told& t) {
       t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::endpoint_state, 8, 3, 0, 1);
       t.core(event_id::endpoint_state, 8, 3, 5, 1).core(event_id::hello_accepted, 4, 100, 201, 1);
       t.core(event_id::endpoint_state, 8, 4, 0, 1);
     }},
    {"TP-D52", "an endpoint beside one that is free",
     [](told& t) {
       t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::endpoint_state, 8, 3, 0, 1);
       t.core(event_id::endpoint_state, 8, 3, 5, 1).core(event_id::hello_accepted, 4, 100, 200, 1);
       t.core(event_id::endpoint_state, 9, 4, 0, 1);
     }},
    {"TP-D52", "more endpoints than four for each connection",
     [](told& t) {
       t.core(event_id::hello_accepted, 3, 100, 200, 1);
       invariants::told_transport(t.looking(), 0, 16, 10 * ms, 1);
       for (std::uint64_t i = 0; i < 5; ++i) t.core(event_id::endpoint_state, 8 + i, 3, 0, 1);
     }},
    {"model connection", "an attempt that drains",
     [](told& t) { t.core(event_id::connection_state, 3, 0, 0, 0).core(event_id::connection_state, 3, 0, 0, 3); }},
    {"model endpoint", "an end without a close",
     [](told& t) { t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 4, 0); }},
    {"model operation", "a callback of what was not posted",
     [](told& t) {
       t.core(event_id::transport_state, 1, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 2);
       t.core(event_id::operation_submitted, 20, 3).core(event_id::operation_ended, 20, 1, 0);
     }},
    {"model transport", "gone without a sweep",
     [](told& t) { t.core(event_id::transport_state, 1, 0).core(event_id::transport_state, 1, 6); }},
    {"model worker", "sleep without an arming",
     [](told& t) { t.core(event_id::progress_state, 1, 0, 0).core(event_id::progress_state, 1, 2, 0); }},
    {"model arena", "an unmap of an arena in service",
     [](told& t) {
       build(t);
       t.core(event_id::unmap_submitted, 7, 7, 1);
     }},
    {"model registration", "an answer to nothing",
     [](told& t) {
       t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
       t.core(event_id::map_answered, 5, 0, 0, 0);
     }},
    {"model reservation", "a reservation that is spent twice",
     [](told& t) {
       t.core(event_id::ledger_reserved, 1, 64, 64).core(event_id::ledger_reserved, 1, 32, 96);
       t.core(event_id::ledger_dropped, 1, 96, 0);
     }},
    {"model shutdown", "a pool that reports without a sweep",
     [](told& t) {
       open(t, {}).core(event_id::shutdown_started, 1, 1000).core(event_id::shutdown_step, 1, 4, 1000);
     }},
    {"model span", "a fate that becomes known of what was not in quarantine",
     [](told& t) {
       build(t);
       start_get(t);
       t.device(hardware_event::driver_get_completed, 30, 0, 0).on_fiber(app).core(event_id::span_discharged, 9, 7, 2);
     }},
};

INSTANTIATE_TEST_SUITE_P(one_thing_wrong, every_invariant, testing::ValuesIn(all_wrong));

TEST(invariants, are_each_broken_by_a_stream_of_this_file) {
  std::set<std::string> tried;
  for (const wrong& w : all_wrong) tried.insert(w.invariant);
  for (const check* c : invariants::all_checks()) EXPECT_TRUE(tried.contains(std::string(c->id()))) << c->id();
}

}  // namespace
}  // namespace holdfast::sim
