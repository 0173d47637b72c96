// Proves that the decoder of a hello takes exactly what the encoder makes: every bit that is changed, every byte that
// is missing or too many, is either refused with its reason or changes the one value that it stands for.
#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/hello.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace holdfast {
namespace {

using transport::decode_hello;
using transport::encode_hello;
using transport::encoded_hello;
using transport::hello;
using transport::hello_refusal;

constexpr std::array<std::byte, 5> some_address{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                                std::byte{0xff}};

hello sample() {
  hello message;
  message.sender = {0x1122334455667788, 0x99aabbccddeeff00};
  message.epoch = 3;
  message.library_major = 1;
  message.library_minor = 13;
  message.library_release = 1;
  message.connection = 42;
  message.features = 0x8000000000000001;
  message.machine = {{std::byte{0xab}, std::byte{0xcd}}, 7, 8};
  message.worker_address = some_address;
  return message;
}

std::vector<std::byte> encoded(const hello& message) {
  encoded_hello out;
  encode_hello(message, out);
  return {out.whole().begin(), out.whole().end()};
}

void expect_refused(const std::vector<std::byte>& bytes, hello_refusal why) {
  const auto read = decode_hello(bytes);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error(), why);
}

TEST(transport_hello, what_was_encoded_is_decoded) {
  const auto read = decode_hello(encoded(sample()));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->sender, sample().sender);
  EXPECT_EQ(read->epoch, 3u);
  EXPECT_EQ(read->library_minor, 13u);
  EXPECT_EQ(read->connection, 42u);
  EXPECT_EQ(read->features, 0x8000000000000001u);
  EXPECT_EQ(read->limits.chunk_max, 1u << 20);
  EXPECT_EQ(read->common_version(), transport::protocol_version_high);
  EXPECT_EQ(read->machine, sample().machine);
}

TEST(transport_hello, an_address_of_every_size_comes_through_and_one_that_is_too_long_is_left_out) {
  std::vector<std::byte> address(transport::worker_address_max + 1);
  for (std::size_t i = 0; i < address.size(); ++i) address[i] = static_cast<std::byte>(i * 7);
  for (std::size_t size = 0; size <= address.size(); ++size) {
    hello message = sample();
    message.worker_address = std::span<const std::byte>(address).first(size);
    const auto bytes = encoded(message);
    const auto read = decode_hello(bytes);
    ASSERT_TRUE(read.has_value()) << size;
    const std::size_t wanted = size > transport::worker_address_max ? 0 : size;
    ASSERT_EQ(read->worker_address.size(), wanted);
    EXPECT_TRUE(std::equal(read->worker_address.begin(), read->worker_address.end(), address.begin()));
  }
}

TEST(transport_hello, the_form_before_is_refused_as_another_version) {
  auto bytes = encoded(sample());
  bytes[4] = std::byte{1};
  expect_refused(bytes, hello_refusal::version);
  bytes.resize(80);
  bytes[6] = std::byte{80};
  expect_refused(bytes, hello_refusal::version);
}

TEST(transport_hello, the_form_on_the_wire_is_fixed) {
  const auto bytes = encoded(sample());
  ASSERT_EQ(bytes.size(), 125u);
  EXPECT_EQ(bytes[0], std::byte{'H'});
  EXPECT_EQ(bytes[3], std::byte{'L'});
  EXPECT_EQ(bytes[4], std::byte{3});
  EXPECT_EQ(bytes[6], std::byte{125});
  EXPECT_EQ(bytes[16], std::byte{0x88}) << "little-endian";
  EXPECT_EQ(bytes[48], std::byte{42});
}

TEST(transport_hello, every_shorter_and_every_longer_message_is_refused) {
  const auto whole = encoded(sample());
  for (std::size_t size = 0; size < 200; ++size) {
    if (size == whole.size()) continue;
    auto bytes = whole;
    bytes.resize(size);
    expect_refused(bytes, size < 5 ? hello_refusal::magic : hello_refusal::limits);
  }
}

TEST(transport_hello, every_changed_bit_is_refused_or_changes_its_value) {
  const auto whole = encoded(sample());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const auto read = decode_hello(bytes);
    if (read) {
      EXPECT_EQ(encoded(*read), bytes) << "bit " << bit << " was not understood";
    }
  }
}

TEST(transport_hello, each_rule_has_its_reason) {
  hello message = sample();
  message.sender.worker_id = 0;
  expect_refused(encoded(message), hello_refusal::identity);
  message = sample();
  message.sender.incarnation = 0;
  expect_refused(encoded(message), hello_refusal::identity);
  message = sample();
  message.connection = 0;
  expect_refused(encoded(message), hello_refusal::identity);
  message = sample();
  message.version_low = message.version_high = transport::protocol_version_high + 1;
  expect_refused(encoded(message), hello_refusal::version);
  message = sample();
  message.version_low = 3;
  message.version_high = 2;
  expect_refused(encoded(message), hello_refusal::version);
  message = sample();
  message.limits.chunk_max = 0xffffffff;
  expect_refused(encoded(message), hello_refusal::limits);
  message = sample();
  message.limits.receive_bytes_max = message.limits.chunk_max;
  expect_refused(encoded(message), hello_refusal::limits);
}

TEST(transport_hello, a_newer_peer_that_still_speaks_our_version_is_accepted) {
  hello message = sample();
  message.version_low = 1;
  message.version_high = 9;
  const auto read = decode_hello(encoded(message));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->common_version(), transport::protocol_version_high);
}

}  // namespace
}  // namespace holdfast
