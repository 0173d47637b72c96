// What a stage finds wrong when it looks at core itself, and locks that are held where nobody may hold one.
#include "lives.hpp"
#include "wrong.hpp"

#include <properties/invariants/looks.hpp>

namespace holdfast::sim::streams {

std::vector<wrong> wrong_looks() {
  return {
      {"PM-I36", "a gauge that shows something else",
       [](told& t) {
         build(t);
         invariants::look_at_gauge(t.looking(), 0, mib - 1);
       }},
      {"PM-I37", "a cancellation that finds a lock held",
       [](told& t) { t.under_a_lock([](told& on) { on.device(hardware_event::cancel_fired, 1); }); }},
      {"PM-I37", "pages that go back under a lock",
       [](told& t) { t.under_a_lock([](told& on) { on.device(hardware_event::pages_returned, 50, mib); }); }},
      {"PM-I51", "a snapshot that counts a span it does not list",
       [](told& t) {
         pinned::memory_snapshot taken;
         taken.pool.live_spans = 1;
         invariants::look_at_snapshot(t.looking(), 0, taken);
       }},
  };
}

}  // namespace holdfast::sim::streams
