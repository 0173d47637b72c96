#include <properties/invariants/books/peer_books.hpp>

namespace holdfast::invariants {

void peer_books::forget_peers() noexcept {
  connections.forget();
  endpoints.forget();
  lanes.forget();
  keys.forget();
  operation_keys.forget();
  forget_lives();
  connect_timeout_ns = 0;
  connections_max = 0;
}

void peer_books::forget_lives() noexcept {
  newest_incarnation.forget();
  replaced_incarnation.forget();
}

}  // namespace holdfast::invariants
