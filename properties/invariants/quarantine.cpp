// Promises about what is kept because giving it back would be unsafe: nothing leaves without evidence, or twice.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

std::string entry_named(world& w, const logged_event& e) {
  return named(w, e, "entry", e.fields[2]) + " of quarantine " + std::to_string(e.fields[0]);
}

class an_entry_leaves_once final : public invariant {
 public:
  an_entry_leaves_once()
      : invariant("BASE-Q1", "an entry leaves quarantine at most once for each time it entered, with the same bytes",
                  {kind_of(event_id::quarantine_entered), kind_of(event_id::quarantine_left),
                   kind_of(event_id::quarantine_given_up)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const quarantined_record& r = *b.quarantined[e.fields[1]].find(e.fields[2]);
    if (e.kind == event_id::quarantine_entered) {
      promise(w, r.entered == r.left + r.abandoned + 1,
              [&] { return entry_named(w, e) + " entered while it was inside"; });
      return;
    }
    promise(w, r.entered == r.left + r.abandoned && r.quarantine == e.fields[0],
            [&] { return entry_named(w, e) + " left without being inside"; });
    promise(w, r.bytes == e.fields[3], [&] {
      return entry_named(w, e) + " entered with " + std::to_string(r.bytes) + " bytes and left with " +
             std::to_string(e.fields[3]);
    });
  }
};

class an_entry_leaves_on_evidence final : public invariant {
 public:
  an_entry_leaves_on_evidence()
      : invariant("BASE-Q2",
                  "an entry leaves quarantine only on evidence that it names, about the subject that it names",
                  {kind_of(event_id::quarantine_left), kind_of(event_id::quarantine_fence_begun)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const quarantined_record& r = *b.quarantined[e.fields[1]].find(e.fields[2]);
    if (e.kind == event_id::quarantine_fence_begun) {
      promise(w, (r.accepts >> evidence_kind::fence & 1) != 0,
              [&] { return "fences were begun for " + entry_named(w, e) + ", which they cannot end"; });
      return;
    }
    const std::uint64_t kind = e.fields[4], subject = e.fields[5];
    promise(w, kind != evidence_kind::none && kind < 64 && (r.accepts >> kind & 1) != 0,
            [&] { return entry_named(w, e) + " left on evidence that cannot end it"; });
    std::uint64_t expected = subject;
    if (kind == evidence_kind::answer) expected = e.fields[2];
    if (kind == evidence_kind::completion) expected = r.operation;
    if (kind == evidence_kind::witness) expected = r.epoch;
    if (kind == evidence_kind::termination) expected = r.context;
    promise(w, subject == expected, [&] {
      return entry_named(w, e) + " left on evidence about " + std::to_string(subject) + " instead of " +
             std::to_string(expected);
    });
  }
};

class a_fence_is_younger_than_its_entry final : public invariant {
 public:
  a_fence_is_younger_than_its_entry()
      : invariant("BASE-Q3", "fences end only a stay that had begun before they were asked for",
                  {kind_of(event_id::quarantine_left)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.fields[4] != evidence_kind::fence) return;
    const quarantined_record& r = *b.quarantined[e.fields[1]].find(e.fields[2]);
    const std::uint64_t stamp = e.fields[5];
    promise(w, r.first_fence != 0 && r.first_fence <= stamp && stamp <= r.last_fence,
            [&] { return entry_named(w, e) + " left on fences of another stay or another entry"; });
  }
};

class what_is_abandoned_was_inside final : public invariant {
 public:
  what_is_abandoned_was_inside()
      : invariant("BASE-Q4", "what a quarantine gives up is exactly what entered and did not leave",
                  {kind_of(event_id::quarantine_abandoned)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const quarantine_record& q = *b.quarantines.find(e.fields[0]);
    promise(w, q.entries_before == e.fields[1] && q.bytes_before == e.fields[2], [&] {
      return named(w, e, "quarantine", e.fields[0]) + " gives up " + std::to_string(e.fields[1]) + " entries of " +
             std::to_string(e.fields[2]) + " bytes; inside are " + std::to_string(q.entries_before) + " of " +
             std::to_string(q.bytes_before);
    });
  }
};

}  // namespace

void add_quarantine(invariant_list& list) {
  list.push_back(std::make_unique<an_entry_leaves_once>());
  list.push_back(std::make_unique<an_entry_leaves_on_evidence>());
  list.push_back(std::make_unique<a_fence_is_younger_than_its_entry>());
  list.push_back(std::make_unique<what_is_abandoned_was_inside>());
}

}  // namespace holdfast::invariants
