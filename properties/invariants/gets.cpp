// Promises about fetching into a buffer: who can read it meanwhile, and how often its state ends.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class a_destination_is_unreadable_meanwhile final : public invariant {
 public:
  a_destination_is_unreadable_meanwhile()
      : invariant("PM-I28", "a GET's destination is in nobody's hands between submission and completion",
                  {kind_of(event_id::buffer_returned), kind_of(event_id::reference_made)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::reference_made) {
      const span_record* const s = b.spans.find(e.fields[0]);
      promise(w, s != nullptr && !s->lent,
              [&] { return "a reference was made of " + named(w, e, "span", e.fields[0]) + ", which a transfer has"; });
      return;
    }
    const operation_record* const o = b.operations.find(e.fields[1]);
    const request_record* const r = o != nullptr ? b.requests.find(o->request) : nullptr;
    promise(w, r == nullptr || !r->open, [&] {
      return named(w, e, "span", e.fields[0]) + " came back to its caller while request " + std::to_string(o->request) +
             " still writes it";
    });
  }
};

class a_transfer_state_ends_once final : public invariant {
 public:
  a_transfer_state_ends_once()
      : invariant("PM-I29", "every operation state is destroyed exactly once, whichever exit it takes",
                  {kind_of(event_id::hold_dropped), kind_of(hardware_event::driver_get_posted),
                   kind_of(hardware_event::dma_write), kind_of(event_id::buffer_returned),
                   kind_of(event_id::witness_issued)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::witness_issued) {
      // All have ended by then, the sweep included.
      if (b.hung != 0) return;
      for (std::size_t i = 0; i < b.operations.size(); ++i) {
        const operation_record& o = b.operations.at(i);
        const span_record* const s = o.ended != 0 && o.span != none ? b.spans.find(o.span) : nullptr;
        if (s == nullptr || s->operation != b.operations.id_at(i)) continue;
        promise(w, s->holds == 0, [&] {
          return named(w, e, "operation", s->operation) + " has ended, and its state still holds span " +
                 std::to_string(o.span);
        });
      }
      return;
    }
    if (e.kind == event_id::buffer_returned) {
      const operation_record* const o = b.operations.find(e.fields[1]);
      if (o != nullptr)
        promise(w, o->returned <= 1,
                [&] { return named(w, e, "operation", e.fields[1]) + " gave its buffer back twice"; });
      return;
    }
    if (e.kind == event_id::hold_dropped) {
      const span_record& s = *b.spans.find(e.fields[0]);
      promise(w, s.holds >= 0,
              [&] { return named(w, e, "span", e.fields[0]) + " was let go of by more transfers than hold it"; });
      return;
    }
    std::uint64_t operation = none;
    if (e.kind == hardware_event::dma_write)
      operation = b.operation_of_write(e);
    else if (const request_record* const r = b.requests.find(e.fields[0]))
      operation = r->operation;
    const operation_record* const o = b.operations.find(operation);
    const span_record* const s = o != nullptr ? b.spans.find(o->span) : nullptr;
    if (s == nullptr) return;
    // A write of unknown fate may come after the end: then the span must still be in quarantine.
    promise(w, s->holds > 0 || s->quarantined, [&] {
      return named(w, e, "operation", operation) + " is under way while no transfer holds span " +
             std::to_string(o->span);
    });
  }
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    if (b.hung != 0) return;
    for (std::size_t i = 0; i < b.spans.size(); ++i) {
      const span_record& s = b.spans.at(i);
      if (s.operation == none) continue;
      promise(w, s.holds == 0, [&] {
        return "span " + std::to_string(b.spans.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " is still held by a transfer at rest";
      });
    }
  }
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override {
    for (std::size_t i = 0; i < b.spans.size(); ++i) {
      const span_record& s = b.spans.at(i);
      const operation_record* const o = s.holds > 0 && !s.quarantined ? b.operations.find(s.operation) : nullptr;
      if (o == nullptr) continue;
      // Without a request the library had finished it when it was asked.
      const request_record* const r = b.requests.find(o->request);
      const bool over = o->ended != 0 || (r != nullptr ? !r->open : o->submitted != 0 && o->landed == o->bytes);
      promise(w, !over, [&] {
        return "operation " + std::to_string(s.operation) + " of host " + std::string(host_name(w, host)) +
               " is over, and span " + std::to_string(b.spans.id_at(i)) + " is still held for it";
      });
    }
  }
};

class references_name_the_peer_that_lives final : public invariant {
 public:
  references_name_the_peer_that_lives()
      : invariant("PM-I45", "no GET is submitted whose reference names another life than the connected peer's",
                  {kind_of(event_id::buffer_lent)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const operation_record* const o = b.operations.find(e.fields[1]);
    if (o == nullptr || o->accepted == 0) return;
    promise(w, e.fields[2] == o->incarnation, [&] {
      return named(w, e, "operation", e.fields[1]) + " goes to incarnation " + std::to_string(o->incarnation) +
             " of its peer with a reference of incarnation " + std::to_string(e.fields[2]);
    });
  }
};

}  // namespace

void add_gets(invariant_list& list) {
  list.push_back(std::make_unique<a_destination_is_unreadable_meanwhile>());
  list.push_back(std::make_unique<a_transfer_state_ends_once>());
  list.push_back(std::make_unique<references_name_the_peer_that_lives>());
}

}  // namespace holdfast::invariants
