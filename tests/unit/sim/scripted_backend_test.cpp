// The scripted device: each answer that a fault names is the one that is given, at its time, and what it says of the
// hardware is so.
//
// How: one host whose main fiber submits requests that only take notes; the plan has one fault, and the simulated memory
// is asked what is registered and who owns what.
#include <sim/backend/pattern.hpp>
#include <sim/backend/scripted_backend.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/hardware/host_memory.hpp>
#include <sim/kernel/fiber.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>

#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace {

namespace hf = holdfast;
namespace sim = holdfast::sim;
using hf::pinned::get_outcome;
using hf::pinned::unmap_verdict;

constexpr std::size_t page = 4096;
constexpr hf::peer_id peer{.worker_id = 9, .incarnation = 900};

struct noted_map final : hf::pinned::map_request {
  std::optional<hf::result<hf::pinned::mapped_range>> answer;
  int answers = 0;
  std::int64_t at_ns = 0;
  void mapped(const hf::result<hf::pinned::mapped_range>& told) noexcept override {
    answer = told;
    ++answers;
    at_ns = sim::world::current().now();
  }
  bool ok() const { return answer && answer->has_value(); }
};

struct noted_unmap final : hf::pinned::unmap_request {
  std::optional<unmap_verdict> verdict;
  int answers = 0;
  std::int64_t at_ns = 0;
  void unmapped(unmap_verdict told) noexcept override {
    verdict = told;
    ++answers;
    at_ns = sim::world::current().now();
  }
};

struct noted_listener final : hf::fate_listener {
  int told = 0;
  void fate_unknown() noexcept override { ++told; }
};

struct noted_get final : hf::pinned::get_request {
  std::string story;  // what was called, in order
  bool given_up = false;
  hf::intrusive_ptr<noted_listener> waiting;
  void accepted() noexcept override { note(operation != 0 ? "accepted" : "accepted without a number"); }
  bool abandoned() const noexcept override { return given_up; }
  void orphaned() noexcept override { note("orphaned"); }
  hf::intrusive_ptr<hf::fate_listener> listener() const noexcept override { return waiting; }
  void ended(get_outcome outcome, const hf::error&) noexcept override {
    // Short: a story on a fiber that is abandoned must not have anything on the heap.
    constexpr const char* names[] = {"ok", "failed", "unstarted", "lost"};
    note(names[static_cast<std::size_t>(outcome)]);
  }
  void note(const char* what) {
    const sim::kernel_scope kernel;
    story += (story.empty() ? "" : " ") + std::string(what);
  }
};

class ScriptedBackend : public testing::Test {
 protected:
  sim::fifo_strategy strategy;
  sim::world world{{}, strategy};
  sim::host& host = world.add_host("a");
  sim::host_memory& memory = sim::memory_of(host);
  sim::scripted_options options;
  std::optional<sim::scripted_backend> device;
  bool finish = true;

  void plan(std::vector<sim::fault> faults) {
    ASSERT_EQ(sim::fault_plan::of(world).install(std::move(faults)), std::nullopt);
  }
  void plan(const char* where, const char* what, std::int64_t value = 0) { plan({{where, "a", 1, 1, what, value}}); }

  std::byte* pages(std::size_t count) {
    const sim::kernel_scope kernel;
    return memory.allocate(count * page).value();
  }
  void pass(std::int64_t ns) {
    for (const std::int64_t until = world.now() + ns; world.now() < until;) world.block(sim::op_kind::sleep, 0, until);
  }
  void submit(noted_map& request, std::byte* base, std::size_t count) {
    request.address = base;
    request.bytes = count * page;
    device->submit_map(request);
  }
  std::uint64_t region_of(std::byte* base, std::size_t count) {
    noted_map request;
    submit(request, base, count);
    pass(30'000);
    return request.ok() ? (*request.answer)->region : 0;
  }
  void submit(noted_get& request, std::uint64_t region, std::byte* into, std::size_t bytes) {
    request.peer = peer;
    request.source = sim::scripted_source(peer, 17, bytes);
    request.destination = into;
    request.bytes = bytes;
    request.destination_region = region;
    EXPECT_TRUE(device->submit_get(request).has_value());
  }
  bool landed(const std::byte* at, std::size_t bytes) const {
    return !sim::first_difference(std::span(at, bytes), 17).has_value();
  }

  /// Runs `body` on the fiber "main". A device that the body tore down itself is only finished.
  void run(std::move_only_function<void()> body) {
    device.emplace(host, options);
    // Kept here: a fiber that is abandoned destroys nothing.
    body_ = std::move(body);
    host.spawn("main", [this] {
      const hf::platform::clock clock;
      hf::event_log log(clock);
      device->start(log);
      body_();
      if (!finish) {
        world.at(world.now(), [this] { host.crash(); });
        world.block(sim::op_kind::sleep, 0, INT64_MAX);
      }
      device->finish();
      device->stop();
      body_ = nullptr;
    });
    world.run();
  }
  bool tear_down() { return device->tear_down(INT64_MAX).has_value(); }
  std::move_only_function<void()> body_;
  std::string violated() const {
    return world.violated() ? world.violated()->invariant + ": " + world.violated()->message : "";
  }
};

TEST_F(ScriptedBackend, WithoutAFaultEverythingIsDoneAsAskedAndInTime) {
  noted_map map;
  noted_unmap unmap;
  noted_get get;
  bool at_half = false, registered = false, gone = false;
  run([&] {
    std::byte* const base = pages(2);
    submit(map, base, 2);
    pass(options.map_ns + 1);
    ASSERT_TRUE(map.ok());
    registered = memory.registered(base, 2 * page);
    submit(get, (*map.answer)->region, base, 100);
    pass(options.get_ns / 2 + 1);
    at_half = landed(base, 50) && !landed(base, 51) && get.story == "accepted";
    pass(options.get_ns);
    EXPECT_TRUE(landed(base, 100));
    unmap.region = (*map.answer)->region;
    device->submit_unmap(unmap);
    pass(options.unmap_ns + 1);
    gone = !memory.registered(base, 2 * page) && memory.held_pins() == 0;
    memory.free(base, 2 * page);
    EXPECT_TRUE(tear_down());
  });
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(map.at_ns, options.map_ns);
  EXPECT_EQ((*map.answer)->effective_bytes, 2 * page);
  EXPECT_TRUE(registered && at_half && gone);
  EXPECT_EQ(get.story, "accepted ok");
  EXPECT_EQ(unmap.verdict, unmap_verdict::confirmed);
  EXPECT_EQ(map.answers + unmap.answers, 2);
}

TEST_F(ScriptedBackend, AMapCoversMoreOrLessThanAskedIfItsFaultSaysSo) {
  plan({{"scripted.map", "a", 1, 1, "larger", 0},
        {"scripted.map", "a", 2, 1, "short", 0},
        {"scripted.map", "a", 3, 1, "short", 0}});
  run([&] {
    std::byte* const base = pages(2);
    std::byte* const other = pages(2);
    std::byte* const small = pages(1);
    noted_map larger, shorter, shortest;
    submit(larger, base, 2);
    submit(shorter, other, 2);
    submit(shortest, small, 1);
    pass(30'000);
    ASSERT_TRUE(larger.ok() && shorter.ok() && shortest.ok());
    EXPECT_TRUE((*larger.answer)->effective_address < base && (*larger.answer)->effective_bytes == 4 * page);
    EXPECT_TRUE((*shorter.answer)->effective_bytes == page && !memory.registered(other, 2 * page));
    EXPECT_EQ((*shortest.answer)->effective_bytes, page - 1);
    EXPECT_TRUE(tear_down());
  });
  EXPECT_EQ(violated(), "");
}

TEST_F(ScriptedBackend, ARefusedMapRegistersNothingAndADelayedOneComesLate) {
  plan({{"scripted.map", "a", 1, 1, "refused", 0}, {"scripted.map", "a", 2, 1, "delayed", 70'000}});
  noted_map refused, delayed;
  run([&] {
    std::byte* const base = pages(1);
    submit(refused, base, 1);
    pass(30'000);
    EXPECT_TRUE(refused.answers == 1 && !refused.ok() && memory.held_pins() == 0);
    submit(delayed, base, 1);
    pass(89'000);
    EXPECT_EQ(delayed.answers, 0);
    pass(2'000);
    EXPECT_TRUE(delayed.ok());
    EXPECT_TRUE(tear_down());
  });
  EXPECT_EQ(violated(), "");
}

TEST_F(ScriptedBackend, AMapThatIsNeverAnsweredFailsAtTheEndOfTheDevice) {
  plan("scripted.map", "never");
  noted_map map;
  run([&] {
    submit(map, pages(1), 1);
    pass(1'000'000);
    EXPECT_TRUE(map.answers == 0 && memory.held_pins() == 0);
    EXPECT_TRUE(tear_down());
    pass(1);
    EXPECT_TRUE(map.answers == 1 && !map.ok());
  });
  EXPECT_EQ(violated(), "");
}

TEST_F(ScriptedBackend, AMapThatWasDoneInSilenceIsUndoneBeforeItIsAnswered) {
  plan("scripted.map", "silent");
  noted_map map;
  run([&] {
    submit(map, pages(1), 1);
    pass(1'000'000);
    EXPECT_TRUE(map.answers == 0 && memory.held_pins() == 1);
    EXPECT_TRUE(tear_down());
    pass(1);
    EXPECT_TRUE(map.answers == 1 && !map.ok() && memory.held_pins() == 0);
  });
  EXPECT_EQ(violated(), "");
}

struct unmap_case {
  const char* kind;
  std::optional<unmap_verdict> verdict;
  bool held;     // by the device, afterwards
  bool refuses;  // capability
};

class ScriptedUnmap : public ScriptedBackend, public testing::WithParamInterface<unmap_case> {};

TEST_P(ScriptedUnmap, IsAnsweredAsItsFaultSays) {
  const unmap_case& wanted = GetParam();
  options.declared.can_refuse_unmap = wanted.refuses;
  plan("scripted.unmap", wanted.kind, 50'000);
  noted_unmap unmap;
  run([&] {
    std::byte* const base = pages(1);
    unmap.region = region_of(base, 1);
    device->submit_unmap(unmap);
    pass(59'000);
    EXPECT_EQ(unmap.answers, 0);
    pass(2'000);
    EXPECT_EQ(unmap.verdict, wanted.verdict);
    EXPECT_EQ(memory.held_pins(), wanted.held ? 1u : 0u);
    EXPECT_TRUE(tear_down());
    pass(1);
    EXPECT_EQ(memory.held_pins(), 0u) << "the end of the context lets go of everything";
    EXPECT_EQ(unmap.answers, 1);
  });
  EXPECT_EQ(violated(), "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScriptedUnmap,
                         testing::Values(unmap_case{"late", unmap_verdict::confirmed, false, true},
                                         unmap_case{"refused", unmap_verdict::refused, true, true},
                                         unmap_case{"refused", unmap_verdict::unknown, true, false},
                                         unmap_case{"unknown_done", unmap_verdict::unknown, false, true},
                                         unmap_case{"unknown_kept", unmap_verdict::unknown, true, true},
                                         unmap_case{"lie", unmap_verdict::confirmed, true, true},
                                         unmap_case{"never", std::nullopt, true, true}));

TEST_F(ScriptedBackend, APageThatGoesBackUnderAnUnknownUnmapIsAViolationAndUnderALieIsNot) {
  plan({{"scripted.unmap", "a", 1, 1, "lie", 0}, {"scripted.unmap", "a", 2, 1, "unknown_kept", 0}});
  bool first_was_clean = false;
  run([&] {
    for (int i = 0; i < 2; ++i) {
      std::byte* const base = pages(1);
      noted_unmap unmap;
      unmap.region = region_of(base, 1);
      device->submit_unmap(unmap);
      pass(20'000);
      memory.free(base, page);
      if (i == 0) first_was_clean = !world.violated();
    }
  });
  EXPECT_TRUE(first_was_clean);
  EXPECT_EQ(violated().substr(0, 3), "W-2");
}

TEST_F(ScriptedBackend, AnIdThatIsUnmappedTwiceIsAnErrorAndNobodyElsesRegistrationGoes) {
  run([&] {
    std::byte* const base = pages(1);
    std::byte* const other = pages(1);
    noted_unmap first, second;
    first.region = second.region = region_of(base, 1);
    region_of(other, 1);
    device->submit_unmap(first);
    device->submit_unmap(second);
    pass(20'000);
    EXPECT_EQ(first.verdict, unmap_verdict::confirmed);
    EXPECT_EQ(second.verdict, unmap_verdict::unknown);
    EXPECT_TRUE(memory.registered(other, page));
    EXPECT_TRUE(tear_down());
  });
  EXPECT_EQ(violated(), "");
}

struct get_case {
  const char* kind;
  const char* early;  // after twice the time of a GET
  const char* late;   // after the lateness of its fault
  const char* swept;  // after the end of the device
  std::size_t landed_early, landed_late;
};

class ScriptedGet : public ScriptedBackend, public testing::WithParamInterface<get_case> {};

TEST_P(ScriptedGet, EndsAsItsFaultSays) {
  const get_case& wanted = GetParam();
  plan("scripted.get", wanted.kind, 500'000);
  noted_get get;
  run([&] {
    std::byte* const base = pages(1);
    submit(get, region_of(base, 1), base, 100);
    pass(2 * options.get_ns);
    EXPECT_EQ(get.story, wanted.early);
    EXPECT_TRUE(landed(base, wanted.landed_early) &&
                (wanted.landed_early == 100 || !landed(base, wanted.landed_early + 1)));
    pass(600'000);
    EXPECT_EQ(get.story, wanted.late);
    EXPECT_TRUE(landed(base, wanted.landed_late));
    EXPECT_TRUE(tear_down());
    EXPECT_EQ(get.story, wanted.swept);
  });
  EXPECT_EQ(violated(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ScriptedGet,
    testing::Values(
        get_case{"inline", "accepted ok", "accepted ok", "accepted ok", 100, 100},
        get_case{"failed", "accepted failed", "accepted failed", "accepted failed", 50, 50},
        get_case{"never", "accepted", "accepted", "accepted lost", 50, 50},
        get_case{"indeterminate", "accepted lost", "accepted lost", "accepted lost", 50, 100},
        get_case{"orphaned_ok", "accepted orphaned", "accepted orphaned ok", "accepted orphaned ok", 50, 100},
        get_case{"orphaned_failed", "accepted orphaned", "accepted orphaned failed", "accepted orphaned failed", 50,
                 50},
        get_case{"orphaned_never", "accepted orphaned", "accepted orphaned", "accepted orphaned lost", 50, 50}));

TEST_F(ScriptedBackend, ARefusedGetTouchesNothingAndOneThatNobodyWantsIsWithdrawn) {
  plan("scripted.get", "refused");
  run([&] {
    std::byte* const base = pages(1);
    const std::uint64_t region = region_of(base, 1);
    noted_get refused, unwanted;
    refused.peer = peer;
    refused.source = sim::scripted_source(peer, 17, 10);
    refused.destination = base;
    refused.bytes = 10;
    const auto answer = device->submit_get(refused);
    EXPECT_TRUE(!answer && answer.error().code == hf::error_code::unreachable && refused.story.empty());
    unwanted.given_up = true;
    submit(unwanted, region, base, 10);
    pass(100'000);
    EXPECT_EQ(unwanted.story, "accepted unstarted");
    EXPECT_FALSE(landed(base, 1));
    EXPECT_TRUE(tear_down());
    EXPECT_EQ(device->submit_get(refused).error().code, hf::error_code::shutting_down);
  });
  EXPECT_EQ(violated(), "");
}

TEST_F(ScriptedBackend, AnUnmapUnderATransferIsReported) {
  plan("scripted.get", "never");
  run([&] {
    std::byte* const base = pages(1);
    noted_get get;
    noted_unmap unmap;
    unmap.region = region_of(base, 1);
    submit(get, unmap.region, base, 10);
    pass(20'000);
    device->submit_unmap(unmap);
    pass(20'000);
  });
  EXPECT_EQ(violated().substr(0, 3), "W-1");
}

TEST_F(ScriptedBackend, ACallUnderALockIsReported) {
  run([&] {
    hf::platform::mutex mutex(hf::lock_ranks::base_ledger);
    noted_unmap unmap;
    mutex.lock();
    device->submit_unmap(unmap);
    mutex.unlock();
  });
  EXPECT_EQ(violated().substr(0, 14), "backend misuse");
}

TEST_F(ScriptedBackend, ADeviceThatHangsGivesNoWitnessAndTellsWhoWaits) {
  plan({{"scripted.get", "a", 1, 1, "never", 0}, {"scripted.teardown", "a", 1, 1, "hang", 0}});
  int told = 0;
  std::string story;
  finish = false;
  run([&] {
    std::byte* const base = pages(1);
    noted_get get;
    get.waiting = hf::adopt_new(new noted_listener);
    submit(get, region_of(base, 1), base, 10);
    pass(20'000);
    EXPECT_FALSE(device->tear_down(world.now() + 50'000).has_value());
    told = get.waiting->told;
    get.waiting.reset();
    const sim::kernel_scope kernel;
    story = get.story;
  });
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(told, 1);
  EXPECT_EQ(story, "accepted") << "its record is nobody's any more";
}

TEST_F(ScriptedBackend, WithoutAFenceBytesArriveAfterTheWitnessAndMustFindTheirPages) {
  plan("scripted.get", "never");
  options.declared.destroy_is_fence = false;
  run([&] {
    std::byte* const base = pages(1);
    noted_get get;
    submit(get, region_of(base, 1), base, 100);
    pass(20'000);
    const auto gone = device->tear_down(INT64_MAX);
    EXPECT_TRUE(gone && !gone->fences_gets());
    EXPECT_TRUE(get.story == "accepted lost" && !landed(base, 100));
    device->finish();
    EXPECT_TRUE(landed(base, 100));
  });
  EXPECT_EQ(violated(), "");
}

TEST_F(ScriptedBackend, WithoutAFencePagesThatWentBackTooEarlyAreReported) {
  plan("scripted.get", "never");
  options.declared.destroy_is_fence = false;
  run([&] {
    std::byte* const base = pages(1);
    noted_get get;
    submit(get, region_of(base, 1), base, 100);
    pass(20'000);
    EXPECT_TRUE(tear_down());
    memory.free(base, page);
    device->finish();
  });
  EXPECT_EQ(violated().substr(0, 3), "W-1");
}

TEST_F(ScriptedBackend, ASilentEndLeavesAnswersForLater) {
  plan({{"scripted.unmap", "a", 1, 1, "late", 300'000},
        {"scripted.unmap", "a", 2, 1, "never", 0},
        {"scripted.teardown", "a", 1, 1, "silent", 0}});
  run([&] {
    noted_unmap late, never;
    late.region = region_of(pages(1), 1);
    never.region = region_of(pages(1), 1);
    device->submit_unmap(late);
    device->submit_unmap(never);
    pass(20'000);
    EXPECT_TRUE(tear_down());
    pass(1'000);
    EXPECT_EQ(late.answers + never.answers, 0);
    pass(300'000);
    EXPECT_EQ(late.verdict, unmap_verdict::confirmed);
    EXPECT_EQ(never.answers, 0);
    device->finish();
    EXPECT_EQ(never.verdict, unmap_verdict::unknown);
  });
  EXPECT_EQ(violated(), "");
}

}  // namespace
