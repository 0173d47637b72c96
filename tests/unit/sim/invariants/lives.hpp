// Stretches of a life, as the events that tell of it: what streams of events are put together from.
//
// The things in them are always the same: arena 7 of pool 1 with span 9, GET 20 as request 30 over connection 3.
#pragma once

#include "told.hpp"

#include <holdfast/base/error.hpp>
#include <sim/drivers/ucp_double.hpp>

#include <cstdint>

namespace holdfast::sim::streams {

using function = ucp_double::function;

inline constexpr std::uint64_t mib = 1 << 20;
inline constexpr std::uint32_t app = 1, progress = 2, registration = 3;
inline constexpr std::int64_t ms = 1'000'000, for_ever = INT64_MAX;
inline constexpr auto over_budget = static_cast<std::uint64_t>(error_code::budget_exceeded);

struct opening {
  std::int64_t reclaim_after_ns = for_ever;
  std::uint64_t retain = 0, retries = 3;
  bool pressure = true;
};

told& open(told& t, const opening& how);
/// An arena of 1 MiB over block 5 (pages 50), region and generation 7, registration 70; span 9 of 2 granules is cut
/// before the publication.
told& build(told& t, bool dedicated = false);
/// A GET of 5000 bytes into span 9: operation 20, request 30, over connection 3.
told& start_get(told& t);
told& finish_get(told& t);
told& start_shutdown(told& t, std::int64_t deadline_ns = 1000);
told& retire(told& t, std::uint64_t live = 0);
told& give_back(told& t);
told& reclaim(told& t);
/// A sweep that finds nothing.
told& sweep(told& t, std::uint64_t mode = 0);
told& unmap(told& t);
told& settle(told& t);
/// Span 9 of 512 bytes stays in quarantine 1 until operation 20 completes.
told& admit(told& t);
told& call(told& t, std::uint32_t fiber, function what, std::uint64_t object);
/// Worker 1 of context 1 on the progress thread.
told& open_worker(told& t);
told& complete(told& t);
told& end_shutdown(told& t);

}  // namespace holdfast::sim::streams
