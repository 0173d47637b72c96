// Simulated memory: who owns a page, who registered it, and what a device may do to it.
//
// How: one host without fibers; the memory is called directly, and violations are read from the world.
#include <sim/faults/fault_plan.hpp>
#include <sim/hardware/host_memory.hpp>
#include <sim/hardware/nic.hpp>
#include <sim/kernel/strategies/fifo.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace {

namespace sim = holdfast::sim;

constexpr std::size_t page = 4096;

class HardwareMemory : public testing::Test {
 protected:
  sim::fifo_strategy strategy;
  sim::world world{{}, strategy};
  sim::host& host = world.add_host("a");
  sim::host_memory& memory = sim::memory_of(host);
  sim::nic& nic = sim::nic_of(host);

  std::byte* grant(std::size_t bytes) {
    const auto granted = memory.allocate(bytes);
    EXPECT_TRUE(granted.has_value());
    return *granted;
  }
  std::uint64_t registered(std::byte* base, std::size_t bytes) {
    sim::registration_attempt attempt = nic.begin_register(base, bytes);
    return nic.finish_register(attempt, 1);
  }
  void deregister(std::uint64_t registration) {
    const sim::deregistration_attempt attempt = nic.begin_deregister(registration);
    nic.finish_deregister(registration, attempt);
  }
  void plan(sim::fault f) { EXPECT_EQ(sim::fault_plan::of(world).install({std::move(f)}), std::nullopt); }
  std::string violated() const { return world.violated() ? world.violated()->invariant : ""; }
  std::string sentence() const { return world.violated() ? world.violated()->message : ""; }
};

TEST_F(HardwareMemory, BlocksAreZeroNumberedFromOneAndDoNotOverlap) {
  std::byte* const first = grant(2 * page);
  std::byte* const second = grant(page);
  EXPECT_EQ(memory.name_of(first).block, 1u);
  EXPECT_EQ(memory.name_of(second + 17).block, 2u);
  EXPECT_EQ(memory.name_of(second + 17).offset, 17u);
  EXPECT_TRUE(first + 2 * page <= second || second + page <= first);
  EXPECT_TRUE(std::all_of(first, first + 2 * page, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(memory.owned(first, 2 * page));
  EXPECT_FALSE(memory.owned(first, 4 * page)) << "two blocks side by side are not one";
}

TEST_F(HardwareMemory, AFreedAddressIsGrantedAgainAtOnceAndReadsAsZeros) {
  std::byte* const first = grant(page);
  std::memset(first, 0xab, page);
  memory.free(first, page);
  std::byte* const again = grant(page);
  EXPECT_EQ(again, first);
  EXPECT_EQ(memory.name_of(again).block, 2u);
  EXPECT_TRUE(std::all_of(again, again + page, [](std::byte b) { return b == std::byte{0}; }));
  memory.free(again, page);
  EXPECT_EQ(violated(), "");
}

TEST_F(HardwareMemory, ALargeBlockThatWasTouchedInOnePlaceComesBackZero) {
  constexpr std::size_t large = std::size_t{32} << 20;
  std::byte* const first = grant(large);
  first[5 * page + 3] = std::byte{7};
  first[large - 1] = std::byte{9};
  memory.free(first, large);
  std::byte* const again = grant(large);
  ASSERT_EQ(again, first);
  EXPECT_EQ(again[5 * page + 3], std::byte{0});
  EXPECT_EQ(again[large - 1], std::byte{0});
}

TEST_F(HardwareMemory, AHostWithoutRoomIsRefusedAndChangesNothing) {
  EXPECT_EQ(memory.allocate(std::size_t{2} << 30).error(), ENOMEM);
  EXPECT_EQ(memory.allocate(page + 1).error(), EINVAL);
  EXPECT_EQ(memory.owned_bytes(), 0u);
  plan({"pages.allocate", "a", 1, 1, "refuse", 0});
  EXPECT_EQ(memory.allocate(page).error(), ENOMEM);
  EXPECT_TRUE(memory.allocate(page).has_value());
}

TEST_F(HardwareMemory, GivingBackPagesUnderALiveRegistrationIsW2) {
  std::byte* const base = grant(4 * page);
  EXPECT_NE(registered(base, 4 * page), 0u);
  memory.free(base, 4 * page);
  EXPECT_EQ(violated(), "W-2");
  EXPECT_NE(sentence().find("a block 1"), std::string::npos) << sentence();
}

TEST_F(HardwareMemory, ATombstoneUnderADeregistrationWithoutAnswerIsW2) {
  std::byte* const base = grant(page);
  const std::uint64_t registration = registered(base, page);
  static_cast<void>(nic.begin_deregister(registration));
  EXPECT_FALSE(memory.tombstone(base, page));
  EXPECT_EQ(violated(), "W-2");
  EXPECT_NE(sentence().find("not confirmed gone"), std::string::npos) << sentence();
}

TEST_F(HardwareMemory, AfterAConfirmedDeregistrationPagesMayGo) {
  std::byte* const base = grant(page);
  deregister(registered(base, page));
  EXPECT_EQ(memory.held_pins(), 0u);
  memory.free(base, page);
  EXPECT_EQ(violated(), "");
}

TEST_F(HardwareMemory, ADeregistrationThatLiedLeavesThePinAndBlamesNobody) {
  std::byte* const base = grant(page);
  plan({"nic.deregister", "a", 1, 1, "lie", 0});
  deregister(registered(base, page));
  EXPECT_EQ(memory.held_pins(), 1u) << "the device still holds the pages";
  memory.free(base, page);
  EXPECT_EQ(violated(), "") << "the program was told that it is gone";
  EXPECT_EQ(memory.held_pins(), 1u);
  // The next tenant of the address has other physical pages, which that registration does not cover.
  std::byte* const again = grant(page);
  ASSERT_EQ(again, base);
  EXPECT_FALSE(memory.registered(again, page));
  EXPECT_EQ(memory.drop_pins(1), 1u) << "closing the device ends it";
  EXPECT_EQ(memory.held_pins(), 0u);
}

TEST_F(HardwareMemory, ADeviceWritesOnlyWhereAProgramOwnsAndRegistered) {
  std::byte* const base = grant(4 * page);
  const std::uint64_t registration = registered(base + page, page);
  const std::vector<std::byte> bytes(page, std::byte{0x5a});
  EXPECT_TRUE(memory.dma_write(base + page, bytes.data(), page, registration, memory.admit(1, base + page)));
  EXPECT_EQ(base[page], std::byte{0x5a});
  EXPECT_FALSE(memory.dma_write(base + page + 1, bytes.data(), page, registration, memory.admit(2, base + page)));
  EXPECT_EQ(violated(), "W-1") << "one byte too far";
  EXPECT_EQ(base[2 * page], std::byte{0}) << "and nothing was written";
}

TEST_F(HardwareMemory, ADeviceWriteAfterTheDeregistrationIsW1) {
  std::byte* const base = grant(page);
  const std::uint64_t registration = registered(base, page);
  const sim::dma_admission admission = memory.admit(7, base);
  deregister(registration);
  const std::byte one{1};
  EXPECT_FALSE(memory.dma_write(base, &one, 1, 0, admission));
  EXPECT_EQ(violated(), "W-1");
  EXPECT_NE(sentence().find("transfer 7"), std::string::npos) << sentence();
  EXPECT_NE(sentence().find("not registered"), std::string::npos) << sentence();
}

TEST_F(HardwareMemory, ADeviceWriteIntoFreedPagesIsW1AndNamesTheBlockThatWas) {
  std::byte* const base = grant(page);
  deregister(registered(base, page));
  memory.free(base, page);
  const std::byte one{1};
  EXPECT_FALSE(memory.dma_write(base + 8, &one, 1, 0, {3, 0}));
  EXPECT_EQ(violated(), "W-1");
  EXPECT_NE(sentence().find("a block 1 offset 8"), std::string::npos) << sentence();
}

TEST_F(HardwareMemory, AnEmulatedReadNeedsOwnershipAndNoKey) {
  std::byte* const base = grant(page);
  base[0] = std::byte{42};
  std::byte seen{};
  EXPECT_TRUE(memory.dma_read(&seen, base, 1, 0, false));
  EXPECT_EQ(seen, std::byte{42});
  memory.free(base, page);
  EXPECT_FALSE(memory.dma_read(&seen, base, 1, 0, false));
  EXPECT_EQ(violated(), "W-1");
}

TEST_F(HardwareMemory, ATombstoneReadsAsZerosAndIsNotGrantedAgain) {
  std::byte* const base = grant(page);
  std::memset(base, 0x77, page);
  EXPECT_TRUE(memory.tombstone(base, page));
  std::byte seen{1};
  EXPECT_TRUE(memory.dma_read(&seen, base + 9, 1, 0, false));
  EXPECT_EQ(seen, std::byte{0});
  EXPECT_NE(grant(page), base);
  EXPECT_EQ(memory.tombstone_bytes(), page);
  EXPECT_EQ(violated(), "");
  const std::byte one{1};
  EXPECT_FALSE(memory.dma_write(base, &one, 1, 0, {1, 0}));
  EXPECT_EQ(violated(), "W-1") << "nobody may write there";
}

TEST_F(HardwareMemory, ADoubleFreeIsPageMisuse) {
  std::byte* const base = grant(page);
  memory.free(base, page);
  memory.free(base, page);
  EXPECT_EQ(violated(), "page misuse");
}

TEST_F(HardwareMemory, FreeingPartOfABlockIsPageMisuse) {
  std::byte* const base = grant(4 * page);
  memory.free(base, page);
  EXPECT_EQ(violated(), "page misuse");
  EXPECT_TRUE(memory.owned(base, 4 * page)) << "nothing changed";
}

TEST_F(HardwareMemory, ALateWriteIntoTheNextTenantsBytesIsW3) {
  std::byte* const base = grant(page);
  static_cast<void>(registered(base, page));
  memory.tag_range(base, 256, 11);
  const sim::dma_admission admission = memory.admit(5, base);
  EXPECT_EQ(admission.tag, 11u);
  const std::vector<std::byte> bytes(256, std::byte{1});
  EXPECT_TRUE(memory.dma_write(base, bytes.data(), 256, 0, admission));
  // The span goes back while the transfer runs: nobody's bytes yet, so no tenant is harmed.
  memory.tag_range(base, 256, 0);
  EXPECT_TRUE(memory.dma_write(base, bytes.data(), 256, 0, admission));
  EXPECT_EQ(violated(), "");
  memory.tag_range(base + 128, 128, 12);
  EXPECT_FALSE(memory.dma_write(base, bytes.data(), 256, 0, admission));
  EXPECT_EQ(violated(), "W-3");
  EXPECT_NE(sentence().find("tenant 12 at a block 1 offset 128"), std::string::npos) << sentence();
}

TEST_F(HardwareMemory, TagsSplitAndReplaceEachOther) {
  std::byte* const base = grant(page);
  memory.tag_range(base, 1000, 1);
  memory.tag_range(base + 200, 300, 2);
  memory.tag_range(base + 400, 50, 0);
  memory.tag_range(base + 900, 200, 3);
  const std::vector<std::pair<std::size_t, std::uint64_t>> expected = {
      {0, 1},   {199, 1}, {200, 2}, {399, 2}, {400, 0},  {449, 0}, {450, 2},
      {499, 2}, {500, 1}, {899, 1}, {900, 3}, {1099, 3}, {1100, 0}};
  for (const auto& [at, tag] : expected) EXPECT_EQ(memory.tag_of(base + at), tag) << at;
  memory.tag_range(base, page, 9);
  for (const auto& [at, tag] : expected) EXPECT_EQ(memory.tag_of(base + at), 9u) << at;
}

TEST_F(HardwareMemory, ACrashDropsEverythingAndNumbersGoOn) {
  std::byte* const base = grant(page);
  static_cast<void>(registered(base, page));
  host.crash();
  host.restart();
  sim::host_memory& next = sim::memory_of(host);
  EXPECT_EQ(next.held_pins(), 0u);
  EXPECT_EQ(next.owned_blocks(), 0u);
  const auto again = next.allocate(page);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(next.name_of(*again).block, 2u) << "a number names one block in a run";
  EXPECT_EQ(violated(), "");
}

TEST_F(HardwareMemory, LimitsOfTheCardRefuseARegistrationAndChangeNothing) {
  std::byte* const base = grant(16 * page);
  nic.settings.region_bytes_max = 8 * page;
  sim::registration_attempt attempt = nic.begin_register(base, 9 * page);
  EXPECT_EQ(attempt.answer, sim::registration_answer::limit);
  EXPECT_EQ(nic.finish_register(attempt, 1), 0u);
  nic.settings.registrations_max = 1;
  EXPECT_NE(registered(base, 8 * page), 0u);
  EXPECT_EQ(registered(base + 8 * page, page), 0u);
  nic.settings.registrations_max = 10;
  nic.settings.registered_bytes_max = 10 * page;
  EXPECT_EQ(registered(base + 8 * page, 3 * page), 0u);
  EXPECT_NE(registered(base + 8 * page, 2 * page), 0u);
  EXPECT_EQ(memory.held_bytes(), 10 * page);
}

TEST_F(HardwareMemory, RegisteringMemoryThatIsNobodysIsRefused) {
  std::byte* const base = grant(page);
  memory.free(base, page);
  EXPECT_EQ(registered(base, page), 0u);
  EXPECT_EQ(violated(), "");
}

TEST_F(HardwareMemory, ARegistrationCoversWholePagesAroundTheRange) {
  std::byte* const base = grant(4 * page);
  const sim::registration_attempt attempt = nic.begin_register(base + page + 100, page);
  EXPECT_EQ(attempt.base, base + page);
  EXPECT_EQ(attempt.bytes, 2 * page);
  EXPECT_GT(attempt.duration_ns, nic.settings.register_base_ns);
}

TEST_F(HardwareMemory, ObserversSeeEveryWriteByNameAndStayOverACrash) {
  struct seen final : sim::dma_observer {
    void on_dma_write(sim::host& h, sim::memory_place where, std::size_t bytes, std::uint64_t request) override {
      lines.push_back(h.name() + ' ' + std::to_string(where.block) + ' ' + std::to_string(where.offset) + ' ' +
                      std::to_string(bytes) + ' ' + std::to_string(request));
    }
    std::vector<std::string> lines;
  } observer;
  memory.observe_dma(observer);
  std::byte* base = grant(page);
  static_cast<void>(registered(base, page));
  const std::byte one{1};
  memory.dma_write(base + 3, &one, 1, 0, memory.admit(4, base));
  host.crash();
  host.restart();
  sim::host_memory& next = sim::memory_of(host);
  base = *next.allocate(page);
  sim::registration_attempt attempt = nic.begin_register(base, page);
  static_cast<void>(nic.finish_register(attempt, 1));
  next.dma_write(base, &one, 1, 0, next.admit(5, base));
  EXPECT_EQ(observer.lines, (std::vector<std::string>{"a 1 3 1 4", "a 2 0 1 5"}));
}

TEST(HardwareFaultPlan, APlanNamesItsMistakes) {
  sim::fifo_strategy strategy;
  sim::world world({}, strategy);
  sim::fault_plan& plan = sim::fault_plan::of(world);
  EXPECT_NE(plan.install({{"nic.explode", "", 1, 1, "", 0}})->find("unknown fault point 'nic.explode'"),
            std::string::npos);
  EXPECT_NE(plan.install({{"nic.register", "", 1, 1, "burn", 0}})->find("has no kind 'burn'"), std::string::npos);
  EXPECT_NE(plan.install({{"nic.register", "", 0, 1, "", 0}})->find("counted from 1"), std::string::npos);
}

TEST(HardwareFaultPlan, AFaultStrikesAtItsPassOnItsHostAndNotInTheCalm) {
  sim::fifo_strategy strategy;
  sim::world world({}, strategy);
  sim::host& a = world.add_host("a");
  sim::host& b = world.add_host("b");
  sim::fault_plan& plan = sim::fault_plan::of(world);
  ASSERT_EQ(plan.install({{"ucp.get.error", "b", 2, 2, "", 0},
                          {"heap", "", 1, 1, "pinned.span", 0},
                          {"nic.register", "", 1, 9, "", 0}}),
            std::nullopt);
  EXPECT_EQ(plan.strike(a, "ucp.get.error"), nullptr);
  EXPECT_EQ(plan.strike(b, "ucp.get.error"), nullptr);
  EXPECT_NE(plan.strike(b, "ucp.get.error"), nullptr);
  EXPECT_NE(plan.strike(b, "ucp.get.error"), nullptr);
  EXPECT_EQ(plan.strike(b, "ucp.get.error"), nullptr);
  EXPECT_EQ(plan.passes("ucp.get.error"), 5u);
  EXPECT_EQ(plan.strike(a, "heap", "pinned.arena"), nullptr) << "another site";
  EXPECT_NE(plan.strike(a, "heap", "pinned.span"), nullptr);
  world.begin_calm();
  EXPECT_EQ(plan.strike(a, "nic.register"), nullptr);
  ASSERT_EQ(plan.inert().size(), 1u);
  EXPECT_EQ(plan.inert()[0].where, "nic.register");
}

TEST(HardwareFaultPlan, EveryPointIsDescribedOnceInOrderWithItsKinds) {
  std::string last;
  for (const sim::fault_point& p : sim::all_fault_points()) {
    EXPECT_LT(last, p.name);
    EXPECT_FALSE(p.text.empty()) << p.name;
    EXPECT_FALSE(p.kinds.empty()) << p.name;
    last = p.name;
  }
  EXPECT_GT(sim::all_fault_points().size(), 20u);
}

}  // namespace
