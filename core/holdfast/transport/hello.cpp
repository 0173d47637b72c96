#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/hello.hpp>

#include <algorithm>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

// "HFHL" as it stands on the wire.
constexpr std::uint32_t magic = 0x4c484648u;

constexpr std::size_t at_magic = 0, at_form = 4, at_zero_5 = 5, at_size = 6, at_low = 8, at_high = 10, at_zero_12 = 12,
                      at_worker = 16, at_incarnation = 24, at_epoch = 32, at_major = 40, at_minor = 42, at_release = 44,
                      at_zero_46 = 46, at_connection = 48, at_features = 56, at_control = 64, at_chunk = 68,
                      at_requests = 72, at_receive = 76, at_boot = 80, at_device = 96, at_file = 104,
                      at_address_bytes = 112, at_zero_114 = 114, at_zero_116 = 116, at_address = 120;
static_assert(at_address == hello_bytes);

// Byte by byte, so that neither alignment nor the byte order of the machine matters.
template <class T>
void put(std::array<std::byte, hello_bytes_max>& out, std::size_t at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}

template <class T>
T get(std::span<const std::byte> in, std::size_t at) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= std::uint64_t{std::to_integer<std::uint8_t>(in[at + i])} << (8 * i);
  return static_cast<T>(value);
}

bool within(std::uint64_t value, std::uint64_t low, std::uint64_t high) noexcept {
  return value >= low && value <= high;
}

bool admissible(const connection_limits& limits) noexcept {
  return within(limits.control_message_max, 1u << 10, 64u << 10) && within(limits.chunk_max, 4u << 10, 16u << 20) &&
         within(limits.requests_max, 1, 65536) &&
         limits.receive_bytes_max >= std::uint64_t{limits.chunk_max} + limits.control_message_max;
}

}  // namespace

void encode_hello(const hello& message, encoded_hello& to) noexcept {
  auto& out = to.bytes;
  out.fill({});
  const auto address =
      message.worker_address.size() <= worker_address_max ? message.worker_address : std::span<const std::byte>{};
  to.size = hello_bytes + address.size();
  put<std::uint32_t>(out, at_magic, magic);
  put<std::uint8_t>(out, at_form, hello_form);
  put<std::uint16_t>(out, at_size, static_cast<std::uint16_t>(to.size));
  put<std::uint16_t>(out, at_low, message.version_low);
  put<std::uint16_t>(out, at_high, message.version_high);
  put<std::uint64_t>(out, at_worker, message.sender.worker_id);
  put<std::uint64_t>(out, at_incarnation, message.sender.incarnation);
  put<std::uint64_t>(out, at_epoch, message.epoch);
  put<std::uint16_t>(out, at_major, message.library_major);
  put<std::uint16_t>(out, at_minor, message.library_minor);
  put<std::uint16_t>(out, at_release, message.library_release);
  put<std::uint64_t>(out, at_connection, message.connection);
  put<std::uint64_t>(out, at_features, message.features);
  put<std::uint32_t>(out, at_control, message.limits.control_message_max);
  put<std::uint32_t>(out, at_chunk, message.limits.chunk_max);
  put<std::uint32_t>(out, at_requests, message.limits.requests_max);
  put<std::uint32_t>(out, at_receive, message.limits.receive_bytes_max);
  std::copy(message.machine.boot.begin(), message.machine.boot.end(), out.begin() + at_boot);
  put<std::uint64_t>(out, at_device, message.machine.file_device);
  put<std::uint64_t>(out, at_file, message.machine.file_number);
  put<std::uint16_t>(out, at_address_bytes, static_cast<std::uint16_t>(address.size()));
  std::copy(address.begin(), address.end(), out.begin() + at_address);
}

std::expected<hello, hello_refusal> decode_hello(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < at_form + 1 || get<std::uint32_t>(bytes, at_magic) != magic)
    return std::unexpected(hello_refusal::magic);
  if (get<std::uint8_t>(bytes, at_form) != hello_form) return std::unexpected(hello_refusal::version);
  if (bytes.size() < hello_bytes || bytes.size() > hello_bytes_max ||
      get<std::uint16_t>(bytes, at_size) != bytes.size() ||
      get<std::uint16_t>(bytes, at_address_bytes) != bytes.size() - hello_bytes)
    return std::unexpected(hello_refusal::limits);
  if (get<std::uint8_t>(bytes, at_zero_5) != 0 || get<std::uint32_t>(bytes, at_zero_12) != 0 ||
      get<std::uint16_t>(bytes, at_zero_46) != 0 || get<std::uint16_t>(bytes, at_zero_114) != 0 ||
      get<std::uint32_t>(bytes, at_zero_116) != 0)
    return std::unexpected(hello_refusal::limits);

  hello message;
  message.version_low = get<std::uint16_t>(bytes, at_low);
  message.version_high = get<std::uint16_t>(bytes, at_high);
  if (message.version_low > message.version_high || message.version_low > protocol_version_high ||
      message.version_high < protocol_version_low)
    return std::unexpected(hello_refusal::version);

  message.limits.control_message_max = get<std::uint32_t>(bytes, at_control);
  message.limits.chunk_max = get<std::uint32_t>(bytes, at_chunk);
  message.limits.requests_max = get<std::uint32_t>(bytes, at_requests);
  message.limits.receive_bytes_max = get<std::uint32_t>(bytes, at_receive);
  if (!admissible(message.limits)) return std::unexpected(hello_refusal::limits);

  message.sender.worker_id = get<std::uint64_t>(bytes, at_worker);
  message.sender.incarnation = get<std::uint64_t>(bytes, at_incarnation);
  message.epoch = get<std::uint64_t>(bytes, at_epoch);
  message.connection = get<std::uint64_t>(bytes, at_connection);
  if (message.sender.worker_id == 0 || message.sender.incarnation == 0 || message.epoch == 0 || message.connection == 0)
    return std::unexpected(hello_refusal::identity);

  message.library_major = get<std::uint16_t>(bytes, at_major);
  message.library_minor = get<std::uint16_t>(bytes, at_minor);
  message.library_release = get<std::uint16_t>(bytes, at_release);
  message.features = get<std::uint64_t>(bytes, at_features);
  std::copy_n(bytes.begin() + at_boot, message.machine.boot.size(), message.machine.boot.begin());
  message.machine.file_device = get<std::uint64_t>(bytes, at_device);
  message.machine.file_number = get<std::uint64_t>(bytes, at_file);
  message.worker_address = bytes.subspan(at_address);
  return message;
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
