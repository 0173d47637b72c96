// Proves that the adapter gives pinned memory what its contract says, over real UCX: regions, verdicts, fetched bytes,
// references of another life refused before submission, and answers even after the transport ended.
#include <holdfast/platform/abi.hpp>

#include "tests/ucx/harness.hpp"

#include <holdfast/runtime/ucx_backend.hpp>

#include <gtest/gtest.h>

#include <future>

namespace holdfast::testing {
namespace {

struct map_waiter final : pinned::map_request {
  std::promise<result<pinned::mapped_range>> answer;
  void mapped(const result<pinned::mapped_range>& given) noexcept override { answer.set_value(given); }
};
struct unmap_waiter final : pinned::unmap_request {
  std::promise<pinned::unmap_verdict> answer;
  void unmapped(pinned::unmap_verdict verdict) noexcept override { answer.set_value(verdict); }
};
struct get_waiter final : pinned::get_request {
  std::promise<std::pair<pinned::get_outcome, error>> answer;
  bool gave_up = false;
  std::uint64_t accepted_as = 0;
  void accepted() noexcept override { accepted_as = operation; }
  bool abandoned() const noexcept override { return gave_up; }
  void orphaned() noexcept override { ADD_FAILURE() << "tcp reports every death"; }
  void ended(pinned::get_outcome outcome, const error& why) noexcept override { answer.set_value({outcome, why}); }
};

template <class T>
T in_time(std::promise<T>& promise) {
  auto future = promise.get_future();
  if (future.wait_for(20s) != std::future_status::ready) throw std::runtime_error("no answer");
  return future.get();
}

TEST(ucx_backend, maps_fetches_and_unmaps_for_pinned_memory) {
  peer_process peer({.bytes = 65536, .seed = 9});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ucx_backend backend(own.net(), own.host().executor(), own.log(), std::uint64_t{1} << 40);
  EXPECT_TRUE(backend.declared().get_works);
  EXPECT_TRUE(backend.declared().keeps_tombstones);
  EXPECT_FALSE(backend.declared().unmap_verdict_reported);
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));

  const std::size_t bytes = 65536;
  const auto pages = own.host().pages().allocate(bytes);
  ASSERT_TRUE(pages);
  map_waiter map;
  map.address = *pages;
  map.bytes = bytes;
  backend.submit_map(map);
  const auto mapped = in_time(map.answer);
  ASSERT_TRUE(mapped) << mapped.error().text();
  EXPECT_NE(mapped->region, 0u);
  EXPECT_LE(mapped->effective_address, *pages);
  EXPECT_GE(mapped->effective_bytes, bytes);
  EXPECT_FALSE(mapped->key.bytes().empty());

  const auto fetch = [&](get_waiter& get) {
    get.peer = peer.identity;
    get.source = peer.memory;
    get.destination = *pages;
    get.bytes = bytes;
    get.destination_region = mapped->region;
    return backend.submit_get(get);
  };
  get_waiter get;
  ASSERT_TRUE(fetch(get));
  EXPECT_NE(get.accepted_as, 0u);
  EXPECT_EQ(in_time(get.answer).first, pinned::get_outcome::ok);
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ((*pages)[i], pattern(9, i)) << i;

  get_waiter given_up;
  given_up.gave_up = true;
  ASSERT_TRUE(fetch(given_up));
  EXPECT_EQ(in_time(given_up.answer).first, pinned::get_outcome::never_started);

  get_waiter stale;
  stale.peer = peer.identity;
  stale.source = peer.memory;
  ++stale.source.incarnation;
  stale.destination = *pages;
  stale.bytes = bytes;
  const auto refused = backend.submit_get(stale);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::stale_key);

  unmap_waiter unmap;
  unmap.region = mapped->region;
  backend.submit_unmap(unmap);
  EXPECT_EQ(in_time(unmap.answer), pinned::unmap_verdict::confirmed);
  unmap_waiter again;
  again.region = mapped->region;
  backend.submit_unmap(again);
  EXPECT_EQ(in_time(again.answer), pinned::unmap_verdict::unknown) << "a number is never used for another region";
  own.host().pages().free(*pages, bytes);
}

TEST(ucx_backend, at_the_cap_of_kept_addresses_a_map_is_refused_and_what_was_unmapped_still_counts) {
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  const std::size_t bytes = own.host().pages().page_size();
  ucx_backend backend(own.net(), own.host().executor(), own.log(), 2 * bytes);
  const auto pages = own.host().pages().allocate(bytes);
  ASSERT_TRUE(pages);
  for (int i = 0; i < 3; ++i) {
    map_waiter map;
    map.address = *pages;
    map.bytes = bytes;
    backend.submit_map(map);
    const auto mapped = in_time(map.answer);
    if (i == 2) {
      ASSERT_FALSE(mapped);
      EXPECT_EQ(mapped.error().code, error_code::limit_exceeded) << mapped.error().text();
      EXPECT_NE(mapped.error().text().find("tombstone_bytes_max"), std::string::npos) << mapped.error().text();
      break;
    }
    ASSERT_TRUE(mapped) << mapped.error().text();
    unmap_waiter unmap;
    unmap.region = mapped->region;
    backend.submit_unmap(unmap);
    EXPECT_EQ(in_time(unmap.answer), pinned::unmap_verdict::confirmed);
  }
  EXPECT_EQ(own.events(event_id::tombstones_full).size(), 1u);
  own.host().pages().free(*pages, bytes);
}

TEST(ucx_backend, answers_what_is_asked_after_the_transport_ended) {
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ucx_backend backend(own.net(), own.host().executor(), own.log(), std::uint64_t{1} << 40);
  EXPECT_TRUE(own.teardown(5s).proof.has_value());
  std::byte byte{};
  map_waiter map;
  map.address = &byte;
  map.bytes = 1;
  backend.submit_map(map);
  const auto mapped = in_time(map.answer);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, error_code::shutting_down);
  unmap_waiter unmap;
  unmap.region = 1;
  backend.submit_unmap(unmap);
  EXPECT_EQ(in_time(unmap.answer), pinned::unmap_verdict::unknown);
}

}  // namespace
}  // namespace holdfast::testing
