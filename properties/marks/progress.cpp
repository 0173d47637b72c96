// Marks of the moments between a progress thread's last look at its queue and its sleep.
#include <properties/invariants/id_table.hpp>
#include <properties/marks/mark.hpp>

namespace holdfast::marks {

namespace {

// Of progress_state and progress_woke, in the order of their enumerations.
enum loop_state : std::uint64_t { working, arming, sleeping, stopped };
bool ended_by_a_wake(std::uint64_t cause) { return cause == 1 || cause == 3; }

// Follows each host's progress thread from `arming` on. One process has one.
class arming_watcher : public mark_detector {
 public:
  void begin() final { threads_.forget(); }
  void see(const logged_event& e) final {
    thread& t = threads_[e.host];
    if (e.kind == event_id::progress_state) {
      if (e.fields[1] == arming) {
        t = {e.fiber, true, false, 0};
      } else if (e.fields[1] == sleeping) {
        t.asleep = true;
      } else {
        t.armed = false;
      }
      return;
    }
    if (!t.armed) return;
    if (e.kind == event_id::operation_accepted) {
      if (!t.asleep && e.fiber != t.fiber) t.submitted = e.fields[0];
    } else if (e.fiber == t.fiber) {
      if (judge(t.asleep, t.submitted, e)) reached();
      if (e.kind == event_id::progress_woke) t.armed = false;
    }
  }

 protected:
  explicit arming_watcher(std::initializer_list<sim::event_kind> kinds) : mark_detector(kinds) {}
  /// An event of the thread since it armed. `submitted`: the operation that another thread asked for before the sleep.
  virtual bool judge(bool asleep, std::uint64_t submitted, const logged_event& e) = 0;

 private:
  struct thread {
    std::uint32_t fiber = 0;
    bool armed = false;
    bool asleep = false;
    std::uint64_t submitted = 0;
  };
  invariants::id_table<thread> threads_;
};

class submitted_while_arming final : public arming_watcher {
 public:
  submitted_while_arming()
      : arming_watcher({kind_of(event_id::progress_state), kind_of(event_id::operation_accepted),
                        kind_of(event_id::operation_submitted)}) {}
  bool judge(bool asleep, std::uint64_t submitted, const logged_event& e) override {
    return !asleep && submitted != 0 && e.fields[0] == submitted;
  }
};

class woken_by_a_submission_while_arming final : public arming_watcher {
 public:
  woken_by_a_submission_while_arming()
      : arming_watcher({kind_of(event_id::progress_state), kind_of(event_id::operation_accepted),
                        kind_of(event_id::progress_woke)}) {}
  bool judge(bool asleep, std::uint64_t submitted, const logged_event& e) override {
    return asleep && submitted != 0 && ended_by_a_wake(e.fields[1]);
  }
};

class completion_while_arming final : public arming_watcher {
 public:
  completion_while_arming()
      : arming_watcher({kind_of(event_id::progress_state), kind_of(event_id::operation_accepted),
                        kind_of(event_id::progress_woke), kind_of(hardware_event::driver_callback)}) {}
  bool judge(bool asleep, std::uint64_t submitted, const logged_event& e) override {
    return !asleep && submitted == 0 && e.kind == hardware_event::driver_callback;
  }
};

const mark_registrar<submitted_while_arming> tp_h1{
    "TP-H1",
    "an operation was asked for after the progress thread had begun to arm; it did not sleep, and submitted it"};
const mark_registrar<woken_by_a_submission_while_arming> tp_h2{
    "TP-H2", "an operation was asked for while the progress thread armed; it slept, and was woken"};
const mark_registrar<completion_while_arming> tp_h3{
    "TP-H3", "a completion came while the progress thread armed; it did not sleep, and was called back"};

}  // namespace

}  // namespace holdfast::marks
