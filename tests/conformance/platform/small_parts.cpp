// Clauses H1, I1, D1 to D3, B1, O1 and Z1.
#include <tests/conformance/platform/helpers.hpp>

#include <holdfast/telemetry/event.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace holdfast::conformance {

namespace {

// Read by UCX when it is loaded; without them it would patch this process.
constexpr std::array settings{
    platform::environment_setting{"UCX_MEM_EVENTS", "n"},
    platform::environment_setting{"UCX_HANDLE_ERRORS", "none"},
    platform::environment_setting{"UCX_WARN_UNUSED_ENV_VARS", "n"},
};
constexpr const char* library = "libucp.so.0";

void use_parts(platform::host& host) {
  const std::size_t bytes = host.pages().page_size();
  const auto base = host.pages().allocate(bytes);
  expect(base.has_value(), "pages are there");
  if (base) host.pages().free(*base, bytes);
  expect(host.clock().now() >= platform::time_point{}, "the clock is there");
  expect(host.identity_seed().draw() != 0, "the seed is there");
}

}  // namespace

TEST(PlatformH1, NoAllocationSiteFailsUnlessATestPlantedIt) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < 100; ++i)
      for (const char* site : {"pinned.span", "conformance.none", ""})
        expect(!platform::heap_fault(site), "nobody planted a fault");
  });
}

TEST(PlatformI1, DrawsAreNeverZeroAndNeverRepeat) {
  run_on_side([](platform::host& host) {
    std::vector<std::uint64_t> draws;
    for (unsigned i = 0; i < 1'000; ++i) draws.push_back(host.identity_seed().draw());
    std::ranges::sort(draws);
    expect(draws.front() != 0, "never zero");
    expect(std::ranges::adjacent_find(draws) == draws.end(), "never twice");
    expect(draws.back() > std::uint64_t{1} << 32, "and not a count of small numbers");
  });
}

TEST(PlatformI1, DrawsOfSeveralThreadsDiffer) {
  run_on_side([](platform::host& host) {
    std::vector<std::uint64_t> draws(3 * 20);
    team threads;
    for (std::size_t t = 0; t < 3; ++t)
      threads.start([&, t] {
        for (std::size_t i = 0; i < 20; ++i) draws[t * 20 + i] = host.identity_seed().draw();
      });
    threads.join();
    std::ranges::sort(draws);
    expect(std::ranges::adjacent_find(draws) == draws.end(), "never twice");
  });
}

TEST(PlatformD1, SettingsAreInTheEnvironmentAndWinOverWhatWasThere) {
  run_on_side([](platform::host&) {
    constexpr std::array first{platform::environment_setting{"HOLDFAST_CONFORMANCE", "embedder"}};
    constexpr std::array second{platform::environment_setting{"HOLDFAST_CONFORMANCE", "ours"}};
    static_cast<void>(platform::driver_library::open("libholdfast-no-such-driver.so.0", first));
    expect(platform::environment_value("HOLDFAST_CONFORMANCE") == "embedder", "set although nothing was loaded");
    static_cast<void>(platform::driver_library::open("libholdfast-no-such-driver.so.0", second));
    expect(platform::environment_value("HOLDFAST_CONFORMANCE") == "ours", "ours wins");
    expect(platform::environment_value("HOLDFAST_CONFORMANCE_UNSET").empty(), "empty if it is not set");
  });
}

TEST(PlatformD2, AMissingLibraryIsAnErrorThatNamesIt) {
  run_on_side([](platform::host&) {
    const auto opened = platform::driver_library::open("libholdfast-no-such-driver.so.0", settings);
    expect(!opened.has_value(), "it cannot be loaded");
    if (!opened) expect(opened.error().contains("libholdfast-no-such-driver.so.0"), "the sentence names it");
  });
}

TEST(PlatformD2, AMissingSymbolIsANullPointer) {
  run_on_side([](platform::host&) {
    const auto opened = platform::driver_library::open(library, settings);
    expect(opened.has_value(), "the driver is loaded");
    if (!opened) return;
    expect(opened->symbol("ucp_worker_progress") != nullptr, "what it exports is found");
    expect(opened->symbol("ucp_no_such_function") == nullptr, "what it lacks is null");
  });
}

TEST(PlatformD3, ALoadedLibraryStaysLoaded) {
  run_on_side([](platform::host&) {
    void* before = nullptr;
    {
      const auto opened = platform::driver_library::open(library, settings);
      expect(opened.has_value(), "the driver is loaded");
      if (!opened) return;
      before = opened->symbol("ucp_worker_progress");
    }
    const auto again = platform::driver_library::open(library, settings);
    expect(again.has_value() && again->symbol("ucp_worker_progress") == before, "its functions did not move");
  });
}

TEST(PlatformB1, StopProcessDoesNotReturnAndRunsNoDestructorOfOurs) {
  const auto seen = stop_on_side([](platform::host&) {
    struct guard {
      ~guard() { expect(false, "a destructor ran"); }
    };
    static guard global;
    const guard local;
    platform::stop_process("the conformance suite said so");
  });
  EXPECT_TRUE(seen.stopped) << seen.said;
  EXPECT_NE(seen.said.find("the conformance suite said so"), std::string::npos) << seen.said;
  EXPECT_EQ(seen.said.find("a destructor ran"), std::string::npos) << seen.said;
}

TEST(PlatformO1, ObserversChangeNothingThatCoreCanSee) {
  run_on_side([](platform::host& host) {
    platform::mutex mutex(subject_lock);
    bool inside = false;
    team threads;
    for (unsigned t = 0; t < 2; ++t)
      threads.start([&] {
        scoped_lock lock(mutex);
        expect(!std::exchange(inside, true), "nobody else is inside");
        const auto me = platform::this_thread_number();
        const auto before = host.clock().now();
        platform::observe_event(event_record{});
        expect(platform::this_thread_number() == me, "the same thread goes on");
        expect(host.clock().now() >= before, "time is not turned back");
        inside = false;
      });
  });
}

TEST(PlatformZ1, AHostsPartsAreTheSameForItsWholeLife) {
  run_on_side([](platform::host& host) {
    expect(&host.clock() == &host.clock() && &host.pages() == &host.pages(), "parts stay where they are");
    expect(&host.identity_seed() == &host.identity_seed(), "the seed, too");
    expect(host.executor() == host.executor(), "handles of one executor are equal");
  });
}

TEST(PlatformZ1, WorkThatIsLeftWhenAHostEndsStillFindsItsParts) {
  run_on_side([](platform::host& host) {
    // The function is run or dropped while the host goes away; both use the host's parts.
    struct last_words {
      platform::host* host;
      explicit last_words(platform::host& h) : host(&h) {}
      last_words(last_words&& other) noexcept : host(std::exchange(other.host, nullptr)) {}
      ~last_words() {
        if (host != nullptr) use_parts(*host);
      }
    };
    for (unsigned i = 0; i < 4; ++i) host.executor().execute([words = last_words(host)] {});
  });
}

}  // namespace holdfast::conformance
