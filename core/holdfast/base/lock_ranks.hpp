// The one table of every lock class of the core, in acquisition order.
//
// Why this exists: a deadlock needs two orders. With one table there is one order, and the simulator
// stops at the first acquisition that breaks it. Source: spec/runtime, section 8.
//
// No driver call, callback, post, resumption of a coroutine or destruction of a foreign object happens
// under any lock of this table. Gates, turns and claims are not locks: nothing is held while they are waited for.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock_class.hpp>

namespace holdfast::inline HOLDFAST_ABI {

namespace lock_ranks {
inline constexpr lock_class runtime_lifecycle{10, true, "runtime lifecycle"};
inline constexpr lock_class pinned_arena_vector{210, false, "pinned arena vector"};
inline constexpr lock_class pinned_growth{215, false, "pinned growth"};
inline constexpr lock_class pinned_suballocator{220, true, "pinned suballocator"};
inline constexpr lock_class pinned_retiring_list{270, true, "pinned retiring list"};
inline constexpr lock_class pinned_reclaim{280, true, "pinned reclaim"};
inline constexpr lock_class transport_directory{300, false, "transport connection directory"};
inline constexpr lock_class transport_connection{310, false, "transport connection"};
inline constexpr lock_class transport_calls{315, true, "transport pending calls"};
inline constexpr lock_class transport_operation_table{320, true, "transport operation table"};
inline constexpr lock_class transport_submission{330, true, "transport submission queue"};
inline constexpr lock_class transport_registration{340, true, "transport registration queue"};
inline constexpr lock_class transport_lifecycle{350, true, "transport lifecycle"};
inline constexpr lock_class runtime_refused_requests{360, true, "runtime refused requests"};
inline constexpr lock_class base_ledger{800, true, "base ledger"};
inline constexpr lock_class base_gate{810, true, "base gate waiters"};
inline constexpr lock_class base_turn{815, true, "base turn"};
inline constexpr lock_class base_wait{818, true, "base wait"};
inline constexpr lock_class base_quarantine{820, true, "base quarantine"};
inline constexpr lock_class base_block{830, true, "base block"};
inline constexpr lock_class base_frames{840, true, "base frames"};
inline constexpr lock_class telemetry_sinks{900, true, "telemetry sinks"};
}  // namespace lock_ranks

}  // namespace holdfast::inline HOLDFAST_ABI
