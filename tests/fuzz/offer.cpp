// Feeds the decoder of what a peer of a smoke check says of itself: whatever it takes reads back as the same after it was
// written again.
#include <holdfast/platform/abi.hpp>

#include <smoke/offer.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::smoke;
  const auto read = parse_offer(std::string(reinterpret_cast<const char*>(data), size));
  if (!read) return 0;
  const auto again = parse_offer(to_line(*read));
  if (!again || again->address != read->address || again->who.worker_id != read->who.worker_id ||
      again->who.incarnation != read->who.incarnation || again->memory.address != read->memory.address ||
      again->memory.length != read->memory.length || again->memory.generation != read->memory.generation ||
      again->memory.incarnation != read->memory.incarnation ||
      !std::ranges::equal(again->memory.key.bytes(), read->memory.key.bytes()))
    std::abort();
  return 0;
}
