// Streams with one thing wrong in the budget and in quarantines.
#include "lives.hpp"
#include "wrong.hpp"

namespace holdfast::sim::streams {

std::vector<wrong> wrong_budget() {
  return {
      {"BASE-Q1", "an entry that enters twice",
       [](told& t) { admit(t).core(event_id::quarantine_entered, 1, 2, 9, 512, 4, 4); }},
      {"BASE-Q1", "an entry that leaves twice", [](told& t) { complete(complete(admit(t))); }},
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
           t.core(event_id::quarantine_entered, 1, 3, 8, 64, 6, 1 << 4)
               .core(event_id::quarantine_awaits, 1, 3, 8, 0, 0, 0);
           if (stay == 0) t.core(event_id::quarantine_fence_begun, 1, 3, 8, 5);
           t.core(event_id::quarantine_left, 1, 3, 8, 64, 4, 5);
         }
       }},
      {"BASE-Q4", "a quarantine that gives up other than it has",
       [](told& t) { admit(t).core(event_id::quarantine_abandoned, 1, 1, 511); }},
      {"PM-I7", "a counter that is not the sum", [](told& t) { t.core(event_id::ledger_reserved, 1, 10, 11); }},
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
      {"PM-I35", "a growth that outlives its cancellation",
       [](told& t) {
         open(t, {}).device(hardware_event::cancel_fired, 1).core(event_id::growth_started, 1, mib, 0, 5000).rest();
       }},
      {"PM-I50", "a reservation after the books broke",
       [](told& t) {
         t.core(event_id::ledger_opened, 1, mib).core(event_id::ledger_corrupt, 1, 64, 0).forgiven();
         t.core(event_id::ledger_reserved, 1, 64, 64);
       }},
  };
}

}  // namespace holdfast::sim::streams
