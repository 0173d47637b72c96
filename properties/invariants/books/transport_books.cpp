#include <properties/invariants/books/transport_books.hpp>

namespace holdfast::invariants {

void transport_books::forget_transport() noexcept {
  begin_transport();
  progress_calls = progress_batch = 0;
  unheard = false;
  transport = none;
  calls_open = 0;
  witnesses = hung = 0;
  witnessed_epoch = none;
  idle_wakes = 0;
  worked = true;
}

void transport_books::begin_transport() noexcept {
  workers.forget();
  contexts.forget();
  registration_fiber = progress_fiber = no_fiber;
  progress = progress_state::unseen;
  workers_destroyed = contexts_closed = workers_open = 0;
  absent = failures = witnesses_of_this = 0;
  capabilities = none;
  probe_shared = probe_ended_well = probe_inline = probe_callback = false;
  idle_since = {};
}

}  // namespace holdfast::invariants
