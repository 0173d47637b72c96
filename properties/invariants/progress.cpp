// Promises about the threads of a transport: one of them talks to the worker, it wakes for work, and teardown ends.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class one_thread_drives_the_worker final : public invariant {
 public:
  one_thread_drives_the_worker()
      : invariant("TP-I5", "transfers are posted and called back on the progress thread, registrations on theirs",
                  {kind_of(hardware_event::driver_get_posted), kind_of(hardware_event::driver_callback)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (b.progress_fiber == 0xffffffff) return;
    promise(w, e.fiber == b.progress_fiber && e.fiber != b.registration_fiber, [&] {
      return named(w, e, "request", e.fields[0]) + " was touched from fiber " + std::to_string(e.fiber) +
             "; the worker is fiber " + std::to_string(b.progress_fiber) + "'s";
    });
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
        return "the progress thread of host " + std::string(ghost::host_name(w, e.host)) + " sleeps with " +
               std::to_string(e.fields[2]) + " entries queued";
      });
    if (e.kind != event_id::progress_woke || b.queued.empty()) return;
    for (const std::uint64_t id : b.queued) {
      const operation_record& o = *b.operations.find(id);
      const std::int64_t stalled = ghost::stalled_ns(w, e.host) - o.accepted_stalled_ns;
      promise(w, e.time_ns <= o.accepted_ns + stalled, [&] {
        return named(w, e, "operation", id) + " lay in the queue for " + std::to_string(e.time_ns - o.accepted_ns) +
               " ns while the progress thread slept";
      });
    }
  }
};

class a_witness_tells_the_truth final : public invariant {
 public:
  a_witness_tells_the_truth()
      : invariant("TP-I20", "a witness exists only if the destruction of worker and context returned",
                  {kind_of(event_id::witness_issued), kind_of(event_id::teardown_hung)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::teardown_hung) {
      promise(w, b.witnesses == 0, [&] {
        return "teardown of " + named(w, e, "epoch", e.fields[0]) + " hung, and yet there is a witness";
      });
      return;
    }
    if (b.progress_fiber == 0xffffffff) return;  // a backend without a library
    promise(w, b.workers_destroyed != 0 && b.contexts_closed != 0, [&] {
      return "a witness of " + named(w, e, "epoch", e.fields[0]) + " was issued with " +
             std::to_string(b.workers_destroyed) + " workers destroyed and " + std::to_string(b.contexts_closed) +
             " contexts closed";
    });
  }
};

class an_absent_backend_does_nothing final : public invariant {
 public:
  an_absent_backend_does_nothing()
      : invariant("TP-I29", "a backend that is reported absent holds no registration and makes no call",
                  {kind_of(event_id::transport_state), kind_of(hardware_event::nic_registered),
                   kind_of(hardware_event::driver_get_posted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::transport_state) {
      if (e.fields[1] != transport_state::absent) return;
      std::uint64_t alive = none;
      for (std::size_t i = 0; i < b.registrations.size(); ++i)
        if (b.registrations.at(i).alive) alive = b.registrations.id_at(i);
      promise(w, alive == none && b.open_requests.empty(), [&] {
        return "the transport of host " + std::string(ghost::host_name(w, e.host)) +
               " is reported absent and still holds registration " + std::to_string(alive);
      });
    } else if (b.absent != 0) {
      promise(w, false, [&] {
        return "the transport of host " + std::string(ghost::host_name(w, e.host)) + " calls its library after it was "
               "reported absent";
      });
    }
  }
};

}  // namespace

void add_progress(invariant_list& list) {
  list.push_back(std::make_unique<one_thread_drives_the_worker>());
  list.push_back(std::make_unique<work_wakes_the_progress_thread>());
  list.push_back(std::make_unique<a_witness_tells_the_truth>());
  list.push_back(std::make_unique<an_absent_backend_does_nothing>());
}

}  // namespace holdfast::invariants
