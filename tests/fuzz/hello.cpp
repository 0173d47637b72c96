// Feeds the decoder of a hello: nothing outside the bytes is read, and what it accepts is what the encoder makes.
#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/hello.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An exact copy on the heap, so that a read past its end is seen.
  const std::unique_ptr<std::byte[]> bytes(new std::byte[size]);
  std::memcpy(bytes.get(), data, size);
  const auto read = holdfast::transport::decode_hello({bytes.get(), size});
  if (read) {
    holdfast::transport::encoded_hello again;
    holdfast::transport::encode_hello(*read, again);
    if (size != again.size || std::memcmp(bytes.get(), again.bytes.data(), size) != 0) std::abort();
  }
  return 0;
}
