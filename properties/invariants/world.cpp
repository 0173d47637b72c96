// Promises about the world itself: memory, charges and claims of success. Owned pages under a key (W-1) stand in
// registry.cpp.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class no_page_returned_while_registered final : public invariant {
 public:
  no_page_returned_while_registered()
      : invariant("W-2", "no page is returned to the system while a registration of it is unconfirmed",
                  {kind_of(hardware_event::pages_returned), kind_of(hardware_event::pages_tombstoned)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    bool seen = false;
    for (std::size_t i = 0; i < b.registrations.size(); ++i) {
      const registration_record& r = b.registrations.at(i);
      if (r.pages != e.fields[0]) continue;
      seen = true;
      // A device that answered and did nothing is not core's fault once core was told "gone". Of pages that are no
      // pool's, those of the start-up probe, only the device says that it answered.
      const pages_record* const p = b.pages.find(e.fields[0]);
      const bool told = r.discharged || (p != nullptr && p->block == none);
      if (!r.alive || (r.failed && told)) continue;
      promise(w, false, [&] {
        return named(w, e, "pages", e.fields[0]) + " went back under registration " +
               std::to_string(b.registrations.id_at(i));
      });
    }
    if (seen) promise(w, true, [] { return ""; });
  }
};

class live_bytes_change_only_by_their_transfer final : public invariant {
 public:
  live_bytes_change_only_by_their_transfer()
      : invariant("W-3", "no byte of a live span changes except by its owner or a transfer it admitted",
                  {kind_of(hardware_event::dma_write)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const std::uint64_t pages = e.fields[0], first = e.fields[1], last = first + e.fields[2];
    const pages_record* const p = b.pages.find(pages);
    if (p == nullptr || p->generation == none) return;
    std::uint64_t admitted = none;
    if (const operation_record* const o = b.operations.find(b.operation_of_write(e))) admitted = o->span;
    const std::uint64_t victim = b.live_span_in(pages, first, last, admitted);
    promise(w, victim == none, [&] {
      return "a device wrote bytes [" + std::to_string(first) + ", " + std::to_string(last) + ") of " +
             named(w, e, "pages", pages) + " into span " + std::to_string(victim) + ", which did not ask for them";
    });
  }
};

// Of endpoints and connections TP-I6 and TP-I12 say the same.
class nothing_begins_on_what_is_retired final : public invariant {
 public:
  nothing_begins_on_what_is_retired()
      : invariant("W-4", "no operation begins on a region after it was retired", {kind_of(event_id::hold_taken)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const arena_record& a = b.arenas[e.fields[1]];
    promise(w, a.retired == 0 && a.settled == 0, [&] {
      return "a transfer into " + named(w, e, "span", e.fields[0]) + " begins after its arena was retired";
    });
  }
};

class books_equal_the_hardware_at_rest final : public invariant {
 public:
  books_equal_the_hardware_at_rest()
      : invariant("W-5", "every byte charged is released exactly once; at rest the books equal the hardware", {}) {}
  void judge(world&, const logged_event&, host_books&) override {}
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    if (b.ledgers.size() == 0) return;
    std::uint64_t charged = 0, expected = 0;
    for (std::size_t i = 0; i < b.ledgers.size(); ++i) charged += b.ledgers.at(i).charged;
    for (std::size_t i = 0; i < b.regions.size(); ++i) {
      const region_record& region = b.regions.at(i);
      if (region.confirmed || region.forced) continue;
      const registration_record* const r = b.registrations.find(region.registration);
      if (r == nullptr) continue;
      // Nobody told core, so core still pays, whatever the device did meanwhile.
      expected += r->bytes;
    }
    promise(w, charged == expected, [&] {
      return "host " + std::string(host_name(w, host)) + " is charged " + std::to_string(charged) +
             " bytes at rest, and " + std::to_string(expected) + " are registered";
    });
  }
};

class every_operation_ends final : public invariant {
 public:
  every_operation_ends()
      : invariant("W-6", "every operation ends: with a value, an error, or its hold visible in quarantine", {}) {}
  void judge(world&, const logged_event&, host_books&) override {}
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    if (b.hung != 0) return;
    const auto unfinished = [&](std::string_view what, std::uint64_t id) {
      return std::string(what) + " " + std::to_string(id) + " of host " + std::string(host_name(w, host)) +
             " never ended, and nothing of it is in quarantine";
    };
    for (std::size_t i = 0; i < b.operations.size(); ++i) {
      const operation_record& o = b.operations.at(i);
      if (o.accepted == 0) continue;
      promise(w, o.ended != 0 || kept(b, quarantine_kind::span, o.span),
              [&] { return unfinished("operation", b.operations.id_at(i)); });
    }
    for (std::size_t i = 0; i < b.regions.size(); ++i) {
      const region_record& region = b.regions.at(i);
      if (region.unmaps == 0) continue;
      promise(w, region.unanswered == 0 || region.settled || kept(b, quarantine_kind::arena, b.regions.id_at(i)),
              [&] { return unfinished("an unmap of region", b.regions.id_at(i)); });
    }
    for (std::size_t i = 0; i < b.steps.size(); ++i) {
      const step_record& step = b.steps.at(i);
      if (step.began != 0) promise(w, step.ended == step.began, [&] { return unfinished("step", b.steps.id_at(i)); });
    }
  }

 private:
  static bool kept(host_books& b, std::uint64_t kind, std::uint64_t id) {
    const quarantined_record* const r = b.quarantined[kind].find(id);
    return r != nullptr && (r->inside() || r->abandoned != 0);
  }
};

class no_success_without_the_deed final : public invariant {
 public:
  no_success_without_the_deed()
      : invariant(
            "W-9", "no success is reported for bytes, registrations or releases that did not happen",
            {kind_of(event_id::waiter_told), kind_of(event_id::arena_published), kind_of(event_id::unmap_answered)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::waiter_told) {
      const operation_record* const o = b.operations.find(e.fields[0]);
      if (o == nullptr || o->kind != operation_kind::get || e.fields[1] == 0) return;
      promise(w, o->landed == o->bytes, [&] {
        return named(w, e, "operation", e.fields[0]) + " was told success for " + std::to_string(o->bytes) +
               " bytes, and " + std::to_string(o->landed) + " landed";
      });
    } else if (e.kind == event_id::arena_published) {
      promise(w, b.registered(e.fields[0]), [&] {
        return named(w, e, "arena", e.fields[0]) + " was published without a registration at the device";
      });
    } else if (e.fields[2] == verdict::confirmed) {
      const region_record* const region = b.regions.find(e.fields[0]);
      const registration_record* const r = region != nullptr ? b.registrations.find(region->registration) : nullptr;
      if (r == nullptr) return;
      promise(w, !r->alive || r->failed, [&] {
        return "an unmap of " + named(w, e, "region", e.fields[0]) + " was confirmed without having been done";
      });
    }
  }
};

}  // namespace

void add_world(invariant_list& list) {
  list.push_back(std::make_unique<no_page_returned_while_registered>());
  list.push_back(std::make_unique<live_bytes_change_only_by_their_transfer>());
  list.push_back(std::make_unique<nothing_begins_on_what_is_retired>());
  list.push_back(std::make_unique<books_equal_the_hardware_at_rest>());
  list.push_back(std::make_unique<every_operation_ends>());
  list.push_back(std::make_unique<no_success_without_the_deed>());
}

}  // namespace holdfast::invariants
