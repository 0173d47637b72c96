// Marks of operations that leave the table by a rare exit, and of the keys they use.
#include <properties/invariants/id_table.hpp>
#include <properties/marks/mark.hpp>

#include <holdfast/base/error.hpp>

namespace holdfast::marks {

namespace {

// Of operation_accepted, operation_ended and key_state, in the order of their enumerations.
constexpr std::uint64_t kind_get = 0;
constexpr std::uint64_t exit_inline = 0;
constexpr std::uint64_t key_condemned = 1;

std::uint64_t of_host(const logged_event& e, std::uint64_t id) { return std::uint64_t{e.host} << 48 | id; }

class get_ended_inline final : public mark_detector {
 public:
  get_ended_inline() : mark_detector({kind_of(event_id::operation_accepted), kind_of(event_id::operation_ended)}) {}
  void begin() override { gets_.forget(); }
  void see(const logged_event& e) override {
    if (e.kind == event_id::operation_accepted) {
      if (e.fields[4] == kind_get) gets_[of_host(e, e.fields[0])];
    } else if (e.fields[1] == exit_inline && gets_.find(of_host(e, e.fields[0])) != nullptr) {
      reached();
    }
  }

 private:
  struct get {};
  invariants::id_table<get> gets_;
};

class key_condemned_in_use final : public mark_detector {
 public:
  key_condemned_in_use()
      : mark_detector({kind_of(event_id::key_used), kind_of(event_id::key_state), kind_of(event_id::operation_ended)}) {
  }
  void begin() override {
    uses_.forget();
    key_of_.forget();
  }
  void see(const logged_event& e) override {
    if (e.kind == event_id::key_used) {
      ++uses_[of_host(e, e.fields[0])].operations;
      key_of_[of_host(e, e.fields[1])].key = e.fields[0];
    } else if (e.kind == event_id::operation_ended) {
      const used* const by = key_of_.find(of_host(e, e.fields[0]));
      if (by != nullptr) --uses_[of_host(e, by->key)].operations;
    } else if (e.fields[3] == key_condemned && uses_[of_host(e, e.fields[0])].operations > 0) {
      reached();
    }
  }

 private:
  struct users {
    std::int64_t operations = 0;
  };
  struct used {
    std::uint64_t key = 0;
  };
  invariants::id_table<users> uses_;
  invariants::id_table<used> key_of_;
};

bool somebody_is_told(const logged_event&) { return true; }
// Whoever asks with a reference of an ended life, after the owner's next life was greeted.
class old_reference_refused final : public mark_detector {
 public:
  old_reference_refused() : mark_detector({kind_of(event_id::hello_accepted), kind_of(hardware_event::op_ended)}) {}
  void begin() override { greeted_.forget(); }
  void see(const logged_event& e) override {
    peer& owner = greeted_[e.host];
    if (e.kind == event_id::hello_accepted) {
      owner.returned = owner.returned || (owner.worker_id == e.fields[1] && owner.incarnation != e.fields[2]);
      owner.worker_id = e.fields[1];
      owner.incarnation = e.fields[2];
    } else if (owner.returned && e.fields[1] == 0 && e.fields[2] == stale_key) {
      reached();
    }
  }

 private:
  static constexpr auto stale_key = static_cast<std::uint64_t>(holdfast::error_code::stale_key);
  // The one greeted last, by host.
  struct peer {
    std::uint64_t worker_id = 0, incarnation = 0;
    bool returned = false;
  };
  invariants::id_table<peer> greeted_;
};

bool swept_something(const logged_event& e) { return e.fields[1] != 0; }

const mark_registrar<get_ended_inline> tp_h7{"TP-H7", "a GET ended inside the call that posted it"};
const mark_registrar<single_event<event_id::table_swept, swept_something>> tp_h10{
    "TP-H10", "a worker was destroyed with operations in the table"};
const mark_registrar<key_condemned_in_use> tp_h16{"TP-H16",
                                                  "a key was condemned before a GET posted with it had ended"};
const mark_registrar<single_event<event_id::loss_sent, somebody_is_told>> tp_h44{
    "TP-H44", "an embedder who asked for it was told of the loss of a peer"};
const mark_registrar<old_reference_refused> tp_h18{
    "TP-H18", "a reference of an ended life was refused when its owner had returned and was greeted"};

}  // namespace

}  // namespace holdfast::marks
