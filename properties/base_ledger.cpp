// The capacity ledger against sums: two ledgers, one the other's parent, any order of commands by one thread.
#include <properties/in_world.hpp>

#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace holdfast::properties {

namespace {

// What one ledger should say.
struct books {
  std::uint64_t ceiling;
  std::uint64_t reserved = 0;
  std::uint64_t granted = 0;
  std::uint64_t high = 0;
  std::uint64_t refusals = 0;
  std::uint64_t epoch = 1;
  bool corrupt = false;
  std::uint64_t over_releases = 0;

  std::uint64_t charged() const { return reserved + granted; }
  bool open(std::uint64_t bytes) {
    if (corrupt || bytes == 0) return false;
    if (charged() + bytes > ceiling) {
      ++refusals;
      return false;
    }
    reserved += bytes;
    high = std::max(high, charged());
    return true;
  }
  void drop(std::uint64_t bytes, std::uint64_t refusals_seen) {
    reserved -= bytes;
    if (refusals != refusals_seen) ++epoch;
  }
  void release(std::uint64_t bytes) {
    if (bytes > granted) {
      corrupt = true;
      ++over_releases;
    }
    granted -= std::min(granted, bytes);
    ++epoch;
  }
  void agree(model_run& run, const capacity_ledger& ledger, std::size_t step) const {
    const capacity_snapshot s = ledger.snapshot();
    run.expect(s.charged_bytes == charged() && s.reserved_bytes == reserved, "bytes are charged as in the model", step);
    run.expect(s.charged_bytes_high == high, "the highest charge is remembered", step);
    run.expect(s.refusals == refusals && s.epoch == epoch, "refusals and epochs are counted as in the model", step);
    run.expect(s.corrupt == corrupt && s.over_releases == over_releases, "over-releases are noticed", step);
  }
};

struct open_reservation {
  reservation real;
  std::uint64_t bytes;
  std::uint64_t seen;
  std::uint64_t parent_seen;
};
struct open_grant {
  grant real;
  std::uint64_t bytes;
};

}  // namespace

RC_GTEST_PROP(BaseLedger, AddsUpAsTheModelDoes, ()) {
  const auto list = *commands(8, 64);
  const bool with_parent = *rc::gen::arbitrary<bool>();
  model_run run;
  run.run([&](platform::host& host) {
    event_log log(host.clock());
    capacity_ledger parent(1, 120, log);
    capacity_ledger ledger(2, 100, log, lock_ranks::base_ledger, with_parent ? &parent : nullptr);
    books above{120};
    books here{100};
    std::vector<open_reservation> reservations;
    std::vector<open_grant> grants;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const command& c = list[i];
      switch (c.kind) {
        case 0:
        case 1: {
          auto real = ledger.reserve(c.a);
          const std::uint64_t seen = here.refusals;
          bool expected = here.open(c.a);
          if (expected && with_parent && !above.open(c.a)) {
            here.drop(c.a, seen);
            expected = false;
          }
          run.expect(real.has_value() == expected, "what fits is reserved, and nothing else", i);
          if (real && expected) reservations.push_back({std::move(*real), c.a, seen, above.refusals});
          break;
        }
        case 2: {
          if (reservations.empty()) break;
          auto& one = reservations[c.a % reservations.size()];
          const bool raised = one.real.raise_to(c.b);
          if (c.b < one.bytes) {
            run.expect(!raised, "a reservation is never lowered", i);
            break;
          }
          here.reserved += c.b - one.bytes;
          here.high = std::max(here.high, here.charged());
          if (with_parent) above.reserved += c.b - one.bytes;
          above.high = std::max(above.high, above.charged());
          one.bytes = c.b;
          run.expect(raised == (here.charged() <= 100 && (!with_parent || above.charged() <= 120)),
                     "raising tells whether a ceiling was passed", i);
          break;
        }
        case 3: {
          if (reservations.empty()) break;
          const auto which = reservations.begin() + static_cast<std::ptrdiff_t>(c.a % reservations.size());
          grants.push_back({which->real.commit(), which->bytes});
          run.expect(grants.back().real.bytes() == which->bytes, "the charge is what was reserved", i);
          here.reserved -= which->bytes;
          here.granted += which->bytes;
          if (with_parent) {
            above.reserved -= which->bytes;
            above.granted += which->bytes;
          }
          reservations.erase(which);
          break;
        }
        case 4: {
          if (reservations.empty()) break;
          const auto which = reservations.begin() + static_cast<std::ptrdiff_t>(c.a % reservations.size());
          here.drop(which->bytes, which->seen);
          if (with_parent) above.drop(which->bytes, which->parent_seen);
          reservations.erase(which);
          break;
        }
        case 5: {
          if (grants.empty()) break;
          const auto which = grants.begin() + static_cast<std::ptrdiff_t>(c.a % grants.size());
          which->real.release();
          which->real.release();
          here.release(which->bytes);
          if (with_parent) above.release(which->bytes);
          grants.erase(which);
          break;
        }
        case 6: {
          if (grants.empty()) break;
          auto& one = grants[c.a % grants.size()];
          grant part = one.real.split(c.b);
          if (c.b > one.bytes) {
            run.expect(!part, "more than there is cannot be cut off", i);
            break;
          }
          run.expect(part.bytes() == c.b, "a part is what was asked for", i);
          one.bytes -= c.b;
          grants.push_back({std::move(part), c.b});
          break;
        }
        case 7:
          // Seldom: the books are wrong from here on.
          if (c.a != 63) break;
          ledger.release(here.granted + 1 + c.b);
          {
            const std::uint64_t bytes = here.granted + 1 + c.b;
            here.release(bytes);
            if (with_parent) above.release(bytes);
          }
          break;
      }
      here.agree(run, ledger, i);
      if (with_parent) above.agree(run, parent, i);
    }
    reservations.clear();
    for (auto& each : grants) each.real.release();
    run.expect(ledger.snapshot().charged_bytes == 0, "everything comes back in the end", list.size());
    if (with_parent) run.expect(parent.snapshot().charged_bytes == 0, "also to the parent", list.size());
  });
}

}  // namespace holdfast::properties
