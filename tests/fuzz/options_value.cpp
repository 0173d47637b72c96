// Feeds the parser of option values: the first byte chooses the option, the rest is its text. What is taken is inside the
// range and reads back as the same after it was printed; what is refused is one printable sentence that quotes it.
#include <holdfast/platform/abi.hpp>

#include <holdfast/options/value.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace options = holdfast::options;
  if (size == 0) return 0;
  const options::option_description& what = options::option_table()[data[0] % options::option_table().size()];
  // An exact copy on the heap, so that a read past its end is seen.
  const std::unique_ptr<char[]> text(new char[size - 1]);
  std::memcpy(text.get(), data + 1, size - 1);
  const auto read = options::parse_value(what, {text.get(), size - 1});
  if (read) {
    if (!options::objection(what, *read).empty()) std::abort();
    const auto again = options::parse_value(what, options::print_value(what, *read));
    if (!again || *again != *read) std::abort();
    return 0;
  }
  if (read.error().empty() || read.error().size() > 400) std::abort();
  for (const char c : read.error())
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
  return 0;
}
