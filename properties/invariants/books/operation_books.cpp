#include <properties/invariants/books/operation_books.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

void drop(std::vector<std::uint64_t>& list, std::uint64_t id) noexcept {
  const auto found = std::find(list.begin(), list.end(), id);
  if (found != list.end()) list.erase(found);
}

}  // namespace

void operation_books::forget_operations() noexcept {
  operations.forget();
  requests.forget();
  queued.clear();
  open_requests.clear();
  cancelled = 0;
}

void operation_books::leave_queue(std::uint64_t operation) noexcept { drop(queued, operation); }

void operation_books::close_request(std::uint64_t request) noexcept {
  request_record* const r = requests.find(request);
  if (r == nullptr || !r->open) return;
  r->open = false;
  drop(open_requests, request);
}

std::uint64_t operation_books::open_request_into(std::uint64_t pages, std::uint64_t first,
                                                 std::uint64_t last) noexcept {
  for (const std::uint64_t id : open_requests) {
    const request_record& r = *requests.find(id);
    if (r.pages == pages && r.offset < last && first < r.offset + r.bytes) return id;
  }
  return none;
}

}  // namespace holdfast::invariants
