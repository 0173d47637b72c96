#include <properties/invariants/books/quarantine_books.hpp>

namespace holdfast::invariants {

void quarantine_books::forget_quarantines() noexcept {
  for (auto& kind : quarantined) kind.forget();
  quarantines.forget();
}

}  // namespace holdfast::invariants
