// Feeds the parser of peers' addresses: what it takes is written as what it reads again.
#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/address.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::ucx;
  // An exact copy on the heap, so that a read past its end is seen.
  const std::unique_ptr<char[]> text(new char[size]);
  std::memcpy(text.get(), data, size);
  const auto read = parse_address({text.get(), size});
  if (!read) return 0;
  const std::string written = format_address(read->storage);
  const auto again = parse_address(written);
  if (!again || again->bytes != read->bytes || format_address(again->storage) != written) std::abort();
  return 0;
}
