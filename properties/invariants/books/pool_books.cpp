#include <properties/invariants/books/pool_books.hpp>

namespace holdfast::invariants {

void pool_books::forget_pools() noexcept {
  ledgers.forget();
  pools.forget();
  reliefs.forget();
  gates_closed = 0;
  teardown_due_ns = never;
  teardown_stalled_ns = 0;
}

}  // namespace holdfast::invariants
