// Promises about spans: whose granules these are.

#include <properties/invariants/invariant.hpp>

#include <holdfast/base/error.hpp>

namespace holdfast::invariants {

namespace {

class live_spans_do_not_overlap final : public invariant {
 public:
  live_spans_do_not_overlap() : invariant("PM-I3", "no two live spans overlap", {kind_of(event_id::span_granted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const span_record& s = *b.spans.find(e.fields[0]);
    const span_record* const other = s.collides != none ? b.spans.find(s.collides) : nullptr;
    if (other != nullptr && (other->holds > 0 || other->quarantined)) return;  // PM-I4 and PM-I34 name it better
    promise(w, other == nullptr, [&] {
      return named(w, e, "span", e.fields[0]) + " was granted over live span " + std::to_string(s.collides);
    });
  }
};

class no_grant_under_a_transfer final : public invariant {
 public:
  no_grant_under_a_transfer()
      : invariant("PM-I4", "no span is granted while a transfer holds or writes any of its granules",
                  {kind_of(event_id::span_granted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const span_record& s = *b.spans.find(e.fields[0]);
    const span_record* const other = s.collides != none ? b.spans.find(s.collides) : nullptr;
    std::uint64_t pages = 0, first = 0, last = 0;
    std::uint64_t request = none;
    if (b.extent_of(s, pages, first, last)) request = b.open_request_into(pages, first, last);
    const bool held = (other == nullptr || other->holds <= 0 || other->quarantined) && request == none;
    promise(w, held, [&] {
      return named(w, e, "span", e.fields[0]) + " was granted " +
             (request != none ? "while request " + std::to_string(request) + " is still writing there"
                              : "while a transfer holds span " + std::to_string(s.collides));
    });
  }
};

class a_device_writes_into_its_span_only final : public invariant {
 public:
  a_device_writes_into_its_span_only()
      : invariant("PM-I5", "a device write never lands outside the span that its operation holds",
                  {kind_of(hardware_event::dma_write)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const std::uint64_t operation = b.operation_of_write(e);
    const operation_record* const o = b.operations.find(operation);
    const span_record* const s = o != nullptr ? b.spans.find(o->span) : nullptr;
    std::uint64_t pages = 0, first = 0, last = 0;
    if (s == nullptr || !b.extent_of(*s, pages, first, last)) return;
    const std::uint64_t from = e.fields[1], to = from + e.fields[2];
    promise(w, s->live() && pages == e.fields[0] && from >= first && to <= first + s->length, [&] {
      return "bytes [" + std::to_string(from) + ", " + std::to_string(to) + ") of " +
             named(w, e, "pages", e.fields[0]) + " were written for operation " + std::to_string(operation) +
             ", whose span " + std::to_string(o->span) + (s->live() ? " lies elsewhere" : " was given up");
    });
  }
};

class grants_are_registered final : public invariant {
 public:
  grants_are_registered()
      : invariant("PM-I6", "a granted buffer lies in an arena that is registered at that moment",
                  {kind_of(event_id::span_granted), kind_of(event_id::arena_published)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const bool publishing = e.kind == event_id::arena_published;
    const std::uint64_t generation = publishing ? e.fields[0] : e.fields[1];
    const arena_record& a = *b.arenas.find(generation);
    // The first span is cut before the arena is published, which is when its region is known.
    if (!publishing && a.published == 0 && b.regions.find(generation) == nullptr) return;
    if (publishing && a.spans_granted == 0) return;
    promise(w, a.settled == 0 && b.registered(generation), [&] {
      return (publishing ? named(w, e, "arena", generation)
                         : named(w, e, "span", e.fields[0]) + ", in arena " + std::to_string(generation) + ",") +
             " was granted without a registration";
    });
  }
};

class sizes_are_as_requested final : public invariant {
 public:
  sizes_are_as_requested()
      : invariant("PM-I33", "a buffer has the length that was asked for, in no more granules than it needs",
                  {kind_of(event_id::span_granted)}) {}
  void judge(world& w, const logged_event& e, host_books&) override {
    const std::uint64_t size = e.fields[3], length = e.fields[4];
    promise(w, length != 0 && length <= size * granule_bytes && size <= (length + granule_bytes - 1) / granule_bytes,
            [&] {
              return named(w, e, "span", e.fields[0]) + " has " + std::to_string(length) + " bytes in " +
                     std::to_string(size) + " granules";
            });
  }
};

class quarantined_granules_stay final : public invariant {
 public:
  quarantined_granules_stay()
      : invariant("PM-I34", "a span of unknown fate is never granted again while its arena is registered",
                  {kind_of(event_id::span_quarantined), kind_of(event_id::span_discharged),
                   kind_of(event_id::span_released), kind_of(event_id::span_granted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const span_record& s = *b.spans.find(e.fields[0]);
    if (e.kind == event_id::span_quarantined) {
      promise(w, s.live(), [&] { return named(w, e, "span", e.fields[0]) + " was quarantined after it was given up"; });
    } else if (e.kind == event_id::span_discharged) {
      promise(w, fenced(b, s), [&] { return named(w, e, "span", e.fields[0]) + " left quarantine without a fence"; });
    } else if (e.kind == event_id::span_released) {
      if (!s.quarantined) return;
      promise(w, b.arenas.find(e.fields[1])->settled != 0 || fenced(b, s),
              [&] { return named(w, e, "span", e.fields[0]) + " was given back from quarantine without a fence"; });
    } else {
      const span_record* const other = s.collides != none ? b.spans.find(s.collides) : nullptr;
      if (other != nullptr && other->quarantined)
        promise(w, false, [&] {
          return named(w, e, "span", e.fields[0]) + " was granted over quarantined span " + std::to_string(s.collides);
        });
    }
  }

 private:
  // The operation's own completion, or the end of its worker.
  static bool fenced(host_books& b, const span_record& s) {
    const operation_record* const o = b.operations.find(s.operation);
    const request_record* const r = o != nullptr ? b.requests.find(o->request) : nullptr;
    return r != nullptr && !r->open;
  }
};

class every_granule_is_in_one_place final : public invariant {
 public:
  every_granule_is_in_one_place()
      : invariant(
            "PM-I40",
            "free, live and quarantined granules are an arena's size; what is granted lies inside, and exactly "
            "that is given back, once",
            {kind_of(event_id::span_granted), kind_of(event_id::span_released), kind_of(event_id::arena_published)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::arena_published) {
      const arena_record& a = *b.arenas.find(e.fields[0]);
      for (const std::uint64_t id : a.live) inside(w, e, a, id, *b.spans.find(id));
      if (a.spans_granted != 0) adds_up(w, e, b, e.fields[0], a);
      return;
    }
    const span_record& s = *b.spans.find(e.fields[0]);
    if (e.kind == event_id::span_released) {
      promise(w, !s.released_wrong && s.released == s.granted, [&] {
        return named(w, e, "span", e.fields[0]) +
               (s.released_wrong ? " gave back other granules than it was granted" : " was given back twice");
      });
    }
    const arena_record& a = *b.arenas.find(e.fields[1]);
    if (a.published == 0) return;
    if (e.kind == event_id::span_granted) inside(w, e, a, e.fields[0], s);
    adds_up(w, e, b, e.fields[1], a);
  }

 private:
  void adds_up(world& w, const logged_event& e, host_books& b, std::uint64_t generation, const arena_record& a) {
    const std::uint64_t taken = b.taken_granules(a);
    promise(w, a.said_free + taken == a.bytes / granule_bytes, [&] {
      return named(w, e, "arena", generation) + " has " + std::to_string(a.said_free) + " granules free and " +
             std::to_string(taken) + " in spans, of " + std::to_string(a.bytes / granule_bytes);
    });
  }
  void inside(world& w, const logged_event& e, const arena_record& a, std::uint64_t id, const span_record& s) {
    promise(w, s.size != 0 && (s.offset + s.size) * granule_bytes <= a.bytes, [&] {
      return named(w, e, "span", id) + " has granules [" + std::to_string(s.offset) + ", " +
             std::to_string(s.offset + s.size) + ") of an arena of " + std::to_string(a.bytes / granule_bytes);
    });
  }
};

class room_is_found final : public invariant {
 public:
  room_is_found()
      : invariant("PM-I32", "no request is refused while an arena has room for it: N granules hold N spans of one",
                  {kind_of(event_id::try_alloc_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const fiber_record& fiber = b.fibers[e.fiber];
    if (e.fields[1] != 0 || e.fields[2] != static_cast<std::uint64_t>(error_code::busy) || fiber.try_event == 0) return;
    const std::uint64_t wanted = (fiber.try_bytes + granule_bytes - 1) / granule_bytes;
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      if (a.published == 0 || a.retired != 0 || a.dedicated) continue;
      // What is free now and was neither built nor released meanwhile was free all the time.
      if (a.served_event > fiber.try_event || a.released_event > fiber.try_event) continue;
      promise(w, b.longest_free(a) < wanted, [&] {
        return "a request for " + std::to_string(fiber.try_bytes) + " bytes found nothing, and " +
               named(w, e, "arena", b.arenas.id_at(i)) + " has " + std::to_string(b.longest_free(a)) +
               " granules in one piece";
      });
    }
  }
};

class references_stay_inside final : public invariant {
 public:
  references_stay_inside()
      : invariant("PM-I49", "a remote reference names only bytes inside the requested length of its buffer",
                  {kind_of(event_id::reference_made)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const span_record* const s = b.spans.find(e.fields[0]);
    promise(w,
            s != nullptr && s->live() && s->generation == e.fields[1] && e.fields[2] == s->offset * granule_bytes &&
                e.fields[3] != 0 && e.fields[3] <= s->length,
            [&] {
              return "a reference of " + named(w, e, "span", e.fields[0]) + " names " + std::to_string(e.fields[3]) +
                     " bytes from " + std::to_string(e.fields[2]) + " on";
            });
  }
};

}  // namespace

void add_spans(invariant_list& list) {
  list.push_back(std::make_unique<no_grant_under_a_transfer>());
  list.push_back(std::make_unique<quarantined_granules_stay>());
  list.push_back(std::make_unique<live_spans_do_not_overlap>());
  list.push_back(std::make_unique<a_device_writes_into_its_span_only>());
  list.push_back(std::make_unique<grants_are_registered>());
  list.push_back(std::make_unique<sizes_are_as_requested>());
  list.push_back(std::make_unique<every_granule_is_in_one_place>());
  list.push_back(std::make_unique<room_is_found>());
  list.push_back(std::make_unique<references_stay_inside>());
}

}  // namespace holdfast::invariants
