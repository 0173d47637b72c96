#include <properties/invariants/books/fiber_books.hpp>

namespace holdfast::invariants {

void fiber_books::forget_fibers() noexcept {
  fibers.forget();
  steps.forget();
}

}  // namespace holdfast::invariants
