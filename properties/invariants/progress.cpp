// Promises about the threads of a transport: one of them talks to the worker, it wakes for work, and teardown ends.

#include <properties/invariants/invariant.hpp>

#include <sim/drivers/ucp_double.hpp>

namespace holdfast::invariants {

namespace {

class one_thread_drives_the_worker final : public invariant {
 public:
  one_thread_drives_the_worker()
      : invariant("TP-I5", "transfers are posted and called back on the progress thread, registrations on theirs",
                  {kind_of(hardware_event::driver_get_posted), kind_of(hardware_event::driver_callback),
                   kind_of(hardware_event::driver_call)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == hardware_event::driver_call) return judge_call(w, e, b);
    if (b.progress_fiber == 0xffffffff) return;
    promise(w, e.fiber == b.progress_fiber && e.fiber != b.registration_fiber, [&] {
      return named(w, e, "request", e.fields[0]) + " was touched from fiber " + std::to_string(e.fiber) +
             "; the worker is fiber " + std::to_string(b.progress_fiber) + "'s";
    });
  }

 private:
  void judge_call(world& w, const logged_event& e, host_books& b) {
    using sim::ucp_double::function;
    const auto what = static_cast<function>(e.fields[0]);
    switch (what) {
      case function::ucp_worker_query:
      case function::ucp_worker_get_efd:
      case function::ucp_worker_arm:
      case function::ucp_worker_progress:
      case function::ucp_worker_set_am_recv_handler:
      case function::ucp_worker_get_address:
      case function::ucp_worker_destroy:
      case function::ucp_listener_create:
      case function::ucp_ep_create: {
        const worker_record* const one = b.workers.find(e.fields[1]);
        promise(w, one == nullptr || one->stranger == 0xffffffff, [&] {
          return std::string(sim::ucp_double::name_of(what)) + " on " + named(w, e, "worker", e.fields[1]) +
                 " by fiber " + std::to_string(e.fiber) + "; the worker is fiber " + std::to_string(one->fiber) + "'s";
        });
        break;
      }
      case function::ucp_ep_close_nbx:
      case function::ucp_get_nbx:
      case function::ucp_am_send_nbx:
      case function::ucp_ep_rkey_unpack:
      case function::ucp_rkey_destroy:
      case function::ucp_request_free:
      case function::ucp_listener_reject:
      case function::ucp_listener_destroy:
        if (b.workers.size() == 0) break;
        promise(w, drives(b, e.fiber), [&] {
          return std::string(sim::ucp_double::name_of(what)) + " of host " + std::string(host_name(w, e.host)) +
                 " was called by fiber " + std::to_string(e.fiber) + ", which has no worker";
        });
        break;
      case function::ucp_mem_map:
      case function::ucp_mem_unmap:
      case function::ucp_rkey_pack:
        if (b.workers.size() == 0) break;
        promise(w, !drives(b, e.fiber), [&] {
          return std::string(sim::ucp_double::name_of(what)) + " of host " + std::string(host_name(w, e.host)) +
                 " was called by the progress thread";
        });
        break;
      default: break;
    }
  }
  static bool drives(host_books& b, std::uint32_t fiber) {
    for (std::size_t i = 0; i < b.workers.size(); ++i)
      if (b.workers.at(i).fiber == fiber) return true;
    return false;
  }
};

class work_wakes_the_progress_thread final : public invariant {
 public:
  work_wakes_the_progress_thread()
      : invariant("TP-I7", "an entry pushed while the progress thread sleeps wakes it",
                  {kind_of(event_id::progress_state), kind_of(event_id::progress_woke)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::progress_state && e.fields[1] == progress_state::sleeping)
      promise(w, e.fields[2] == 0, [&] {
        return "the progress thread of host " + std::string(host_name(w, e.host)) + " sleeps with " +
               std::to_string(e.fields[2]) + " entries queued";
      });
    if (e.kind == event_id::progress_state && e.fields[1] == progress_state::sleeping && b.failures == 0)
      look_at_library(w, e.host, b, true);
    if (e.kind != event_id::progress_woke || b.queued.empty()) return;
    for (const std::uint64_t id : b.queued) {
      const operation_record& o = *b.operations.find(id);
      const std::int64_t stalled = stalled_ns(w, e.host) - o.accepted_stalled_ns;
      promise(w, e.time_ns <= o.accepted_ns + stalled, [&] {
        return named(w, e, "operation", id) + " lay in the queue for " + std::to_string(e.time_ns - o.accepted_ns) +
               " ns while the progress thread slept";
      });
    }
  }
  // A wakeup that was lost shows when nothing can run any more.
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override {
    if (b.progress != progress_state::sleeping && b.progress != progress_state::arming) return;
    for (const std::uint64_t id : b.queued)
      promise(w, false, [&] {
        return "operation " + std::to_string(id) + " of host " + std::string(host_name(w, host)) +
               " lies in the queue, and its progress thread sleeps for ever";
      });
    if (b.progress == progress_state::sleeping) look_at_library(w, host, b, false);
  }

 private:
  // Simulated hardware: whoever sleeps must be woken by what the library has to do.
  void look_at_library(world& w, std::uint16_t host, host_books& b, bool falls_asleep) {
    if (b.workers_open == 0 || host >= w.hosts().size() || !w.hosts()[host]->alive()) return;
    for (const sim::ucp_double::worker* const one : sim::ucp_double::library_of(*w.hosts()[host]).workers) {
      // Of a transport that was given up for lost.
      if (one->efd < 0 || b.workers.find(one->number) == nullptr) continue;
      promise(w, falls_asleep ? one->armed || one->signalled : one->signalled || !one->has_work(), [&] {
        return "the progress thread of host " + std::string(host_name(w, host)) + " sleeps, and its worker " +
               std::to_string(one->number) +
               (falls_asleep ? " would not be armed, or was used since" : " has work that wakes nobody");
      });
    }
  }
};

class peers_do_not_delay_the_program final : public invariant {
 public:
  peers_do_not_delay_the_program()
      : invariant(
            "TP-I15",
            "however much peers send, what was submitted is handed over before the next batch of progress is over",
            {kind_of(hardware_event::driver_call)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (static_cast<sim::ucp_double::function>(e.fields[0]) != sim::ucp_double::function::ucp_worker_progress) return;
    if (e.fiber != b.progress_fiber || b.progress_batch == 0) return;
    // Two workers; the batch that runs, and the look before the one that follows.
    const std::uint64_t bound = 2 * (b.progress_batch + 2);
    for (const std::uint64_t id : b.queued) {
      const std::uint64_t left = b.operations.find(id)->calls_when_left;
      if (left == none) continue;
      promise(w, b.progress_calls - left <= bound, [&] {
        return named(w, e, "operation", id) + " waits in the queue, and the library was driven " +
               std::to_string(b.progress_calls - left) + " times since its caller went on; the batch is " +
               std::to_string(b.progress_batch);
      });
    }
  }
};

class no_wakes_without_work final : public invariant {
 public:
  no_wakes_without_work()
      : invariant("TP-I8", "without work and timers the progress thread does not wake again and again",
                  {kind_of(event_id::progress_woke)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    promise(w, b.idle_wakes <= bound, [&] {
      return "the progress thread of host " + std::string(host_name(w, e.host)) + " woke " +
             std::to_string(b.idle_wakes) + " times within a second with nothing to do";
    });
  }

 private:
  // As many as core reports as a storm, and those that began before it counted.
  static constexpr std::uint32_t bound = 1100;
};

class no_lock_in_foreign_hands final : public invariant {
 public:
  no_lock_in_foreign_hands()
      : invariant("TP-I30",
                  "no call of the library, callback or foreign code runs under a lock, and no foreign code on the "
                  "transport's threads",
                  {kind_of(hardware_event::driver_call), kind_of(hardware_event::driver_callback),
                   kind_of(hardware_event::op_began), kind_of(hardware_event::op_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const unsigned held = w.locks_held_by_running_fiber();
    const bool driver = e.kind == hardware_event::driver_call || e.kind == hardware_event::driver_callback;
    promise(w, held == 0, [&] {
      return (driver ? "the library of host " : "a program of host ") + std::string(host_name(w, e.host)) +
             " is entered with " + std::to_string(held) + " locks";
    });
    if (e.kind == hardware_event::driver_call) return judge_call(w, e, b);
    if (driver) return;
    promise(w, e.fiber == 0xffffffff || (e.fiber != b.progress_fiber && e.fiber != b.registration_fiber),
            [&] { return named(w, e, "step", e.fields[0]) + " runs on a thread of the transport"; });
  }

 private:
  // What the library calls back inside `ucp_worker_progress` may take notes, and end nothing.
  void judge_call(world& w, const logged_event& e, host_books& b) {
    using sim::ucp_double::function;
    const auto what = static_cast<function>(e.fields[0]);
    if (what != function::ucp_ep_close_nbx && what != function::ucp_rkey_destroy &&
        what != function::ucp_worker_destroy && what != function::ucp_get_nbx && what != function::ucp_mem_unmap)
      return;
    if (b.workers_open == 0 || e.host >= w.hosts().size() || !w.hosts()[e.host]->alive()) return;
    for (const sim::ucp_double::worker* const one : sim::ucp_double::library_of(*w.hosts()[e.host]).workers) {
      const worker_record* const known = b.workers.find(one->number);
      if (known == nullptr || known->fiber != e.fiber) continue;
      promise(w, !one->progressing, [&] {
        return std::string(sim::ucp_double::name_of(what)) + " of host " + std::string(host_name(w, e.host)) +
               " is called inside a callback of worker " + std::to_string(one->number);
      });
    }
  }
};

class capabilities_are_what_was_seen final : public invariant {
 public:
  // Of the simulated library, as the event says it.
  static constexpr std::uint64_t library_version = 11301;

  capabilities_are_what_was_seen()
      : invariant("TP-I31", "capabilities that are reported equal what the simulated library and hardware do",
                  {kind_of(event_id::transport_capabilities), kind_of(event_id::operation_accepted),
                   kind_of(event_id::endpoint_state)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::transport_capabilities) {
      const std::uint64_t flags = e.fields[2];
      const auto equal = [&](std::uint64_t bit, bool seen, std::string_view what) {
        promise(w, ((flags & bit) != 0) == seen, [&] {
          return named(w, e, "epoch", e.fields[0]) + " reports of \"" + std::string(what) +
                 "\" the opposite of what happened";
        });
      };
      if ((flags & capability::get_works) != 0) equal(capability::get_works, b.probe_ended_well, "a GET works");
      if ((flags & capability::shares_memory) != 0)
        equal(capability::shares_memory, b.probe_shared, "memory is shared");
      if ((flags & capability::registrations_distinct) != 0)
        equal(capability::registrations_distinct, b.registered_twice, "two registrations are two");
      // A GET that the probe gave up may end between the look and the report: what is missing proves nothing.
      if ((flags & capability::inline_exit_seen) != 0)
        equal(capability::inline_exit_seen, b.probe_inline, "a GET ended inside its call");
      if ((flags & capability::callback_exit_seen) != 0)
        equal(capability::callback_exit_seen, b.probe_callback, "a GET was called back");
      promise(w, e.fields[1] == library_version,
              [&] { return named(w, e, "epoch", e.fields[0]) + " reports version " + std::to_string(e.fields[1]); });
    } else if (b.capabilities == none) {
      return;
    } else if (e.kind == event_id::operation_accepted) {
      if (e.fields[4] != operation_kind::get) return;
      promise(w, (b.capabilities & capability::get_works) != 0,
              [&] { return named(w, e, "operation", e.fields[0]) + " is a GET, which is reported absent"; });
    } else if (e.fields[2] == endpoint_state::open && e.fields[3] == endpoint_lane::data) {
      // The start-up's own connection, given up while it was still coming.
      if (const connection_record* const c = b.connections.find(e.fields[1]); c != nullptr && c->probing) return;
      promise(w, (b.capabilities & capability::shares_memory) != 0, [&] {
        return named(w, e, "endpoint", e.fields[0]) + " goes through shared memory, which is reported absent";
      });
    }
  }
};

class transports_share_nothing final : public invariant {
 public:
  transports_share_nothing()
      : invariant("TP-I32", "between two transports of one process nothing is shared but the library",
                  {kind_of(hardware_event::object_shared), kind_of(hardware_event::driver_handle_foreign)}) {}
  // Every host's core lies in the process of the simulator, as several runtimes of one program do.
  void judge(world& w, const logged_event& e, host_books&) override {
    const auto maker = std::string(host_name(w, static_cast<std::uint16_t>(e.fields[1])));
    promise(w, false, [&] {
      if (e.kind == hardware_event::object_shared)
        return "host " + std::string(host_name(w, e.host)) + " uses " +
               w.object_name(static_cast<sim::object_id>(e.fields[0])) + ", which host " + maker +
               " made in its life " + std::to_string(e.fields[2]);
      return named(w, e, "handle", e.fields[0]) + " of host " + maker + " is given to a library that did not make it";
    });
  }
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    for (std::size_t i = 0; i < b.contexts.size(); ++i) {
      const context_record& c = b.contexts.at(i);
      promise(w, !c.two_progress && !c.two_registration, [&] {
        return "context " + std::to_string(b.contexts.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " was used by the threads of two transports";
      });
    }
  }
};

class a_witness_tells_the_truth final : public invariant {
 public:
  a_witness_tells_the_truth()
      : invariant(
            "TP-I20",
            "the teardown ends by its deadline, with a witness only if the destruction of worker and context returned",
            {kind_of(event_id::witness_issued), kind_of(event_id::teardown_hung)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (b.teardown_due_ns != never) {
      const std::int64_t due_ns = b.teardown_due_ns + stalled_ns(w, e.host) - b.teardown_stalled_ns;
      promise(w, e.time_ns <= due_ns, [&] {
        return "the teardown of " + named(w, e, "epoch", e.fields[0]) + " ended " + std::to_string(e.time_ns - due_ns) +
               " ns after its deadline (stalled time not counted)";
      });
    }
    if (e.kind == event_id::teardown_hung) {
      promise(w, b.witnesses_of_this == 0,
              [&] { return "teardown of " + named(w, e, "epoch", e.fields[0]) + " hung, and yet there is a witness"; });
      return;
    }
    promise(w, b.witnesses_of_this == 1, [&] { return "a second witness of " + named(w, e, "epoch", e.fields[0]); });
    if (b.progress_fiber == 0xffffffff) return;  // a backend without a library
    promise(w, b.workers_gone() && b.contexts_closed != 0 && b.contexts_closed >= b.contexts.size(), [&] {
      return "a witness of " + named(w, e, "epoch", e.fields[0]) + " was issued with " +
             std::to_string(b.workers_destroyed) + " workers destroyed and " + std::to_string(b.contexts_closed) +
             " contexts closed";
    });
  }
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    if (b.transport != transport_state::closing && b.transport != transport_state::destroying &&
        b.transport != transport_state::swept && b.transport != transport_state::gone)
      return;
    // Where the library does not return the deadline says so.
    promise(w, b.hung != 0 || (b.transport == transport_state::gone && b.witnesses_of_this == 1), [&] {
      return "the teardown of the transport of host " + std::string(host_name(w, host)) + " never ended";
    });
  }
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override { judge_at_rest(w, host, b); }
};

class an_absent_backend_does_nothing final : public invariant {
 public:
  an_absent_backend_does_nothing()
      : invariant("TP-I29",
                  "a backend that is reported absent holds nothing and makes no call; nothing of a worker outlives it, "
                  "or its context",
                  {kind_of(event_id::transport_state), kind_of(hardware_event::nic_registered),
                   kind_of(hardware_event::driver_call)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::transport_state) {
      if (e.fields[1] != transport_state::absent) return;
      std::uint64_t alive = none;
      for (std::size_t i = 0; i < b.registrations.size(); ++i)
        if (b.registrations.at(i).alive) alive = b.registrations.id_at(i);
      // A library that did not return keeps what it has.
      if (b.hung != 0) return;
      promise(w, alive == none && b.open_requests.empty(), [&] {
        return "the transport of host " + std::string(host_name(w, e.host)) +
               " is reported absent and still holds registration " + std::to_string(alive);
      });
      bool endpoint_open = false;
      for (std::size_t i = 0; i < b.endpoints.size(); ++i)
        endpoint_open = endpoint_open || b.endpoints.at(i).state != endpoint_state::destroyed;
      promise(w, b.workers_open == 0 && b.contexts_closed >= b.contexts.size() && !endpoint_open, [&] {
        return "the transport of host " + std::string(host_name(w, e.host)) + " is reported absent and still has " +
               std::to_string(b.workers_open) + " workers" + (endpoint_open ? " and an endpoint" : "");
      });
    } else if (b.absent != 0 && b.hung == 0) {
      promise(w, false, [&] {
        return "the transport of host " + std::string(host_name(w, e.host)) +
               " calls its library after it was "
               "reported absent";
      });
    } else if (e.kind == hardware_event::driver_call) {
      judge_end(w, e, b);
    }
  }

 private:
  void judge_end(world& w, const logged_event& e, host_books& b) {
    using sim::ucp_double::function;
    const auto what = static_cast<function>(e.fields[0]);
    if (what == function::ucp_cleanup) {
      promise(w, b.workers_open == 0 || b.hung != 0, [&] {
        return named(w, e, "context", e.fields[1]) + " ends with " + std::to_string(b.workers_open) + " workers open";
      });
    } else if (what == function::ucp_worker_destroy && e.host < w.hosts().size() && w.hosts()[e.host]->alive()) {
      for (const sim::ucp_double::worker* const one : sim::ucp_double::library_of(*w.hosts()[e.host]).workers)
        promise(w, one->number != e.fields[1] || one->undecided == 0, [&] {
          return named(w, e, "worker", e.fields[1]) + " ends with " + std::to_string(one->undecided) +
                 " requests of clients neither accepted nor rejected";
        });
    }
  }
};

}  // namespace

void add_progress(invariant_list& list) {
  list.push_back(std::make_unique<one_thread_drives_the_worker>());
  list.push_back(std::make_unique<work_wakes_the_progress_thread>());
  list.push_back(std::make_unique<peers_do_not_delay_the_program>());
  list.push_back(std::make_unique<no_wakes_without_work>());
  list.push_back(std::make_unique<a_witness_tells_the_truth>());
  list.push_back(std::make_unique<an_absent_backend_does_nothing>());
  list.push_back(std::make_unique<no_lock_in_foreign_hands>());
  list.push_back(std::make_unique<capabilities_are_what_was_seen>());
  list.push_back(std::make_unique<transports_share_nothing>());
}

}  // namespace holdfast::invariants
