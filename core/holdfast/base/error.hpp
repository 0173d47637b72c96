// One error value for the whole core.
//
// Why this exists: a caller at the edge has to decide between "again later", "never", and "the bytes are still
// held". A code exists only if some caller would act differently on it.
//
// Ownership   A plain value of fixed size; allocates nothing, trivially copyable.
// Units       Numbers carry the unit that the code's text names (bytes unless it says otherwise).
// Threading   A value.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

enum class error_code : std::uint8_t {
  invalid_argument,  // the caller's fault, visible cheaply
  out_of_range,      // zero length, overflow, outside the object
  invalid_state,     // legal call at the wrong time
  not_configured,    // part switched off, or this backend has no such operation
  absent,            // hardware or library missing, with the reason
  shutting_down,     // a gate is closed; final
  cancelled,         // the notification was given up; what was started goes on
  timed_out,         // the notification ended at its bound; what was started goes on
  out_of_memory,     // host memory
  budget_exceeded,   // numbers: requested, registered, budget
  limit_exceeded,    // numbers: need, limit, in use
  busy,              // a queue or table is full, or nothing is free right now; number: limit
  corrupt,           // the books of this object broke earlier
  unreachable,       // no connection; nothing was submitted
  peer_lost,         // the other side is gone; numbers: worker id, incarnation
  stale_key,         // the reference names another life; numbers: generation, incarnation
  bad_key,           // the key could not be unpacked for this connection
  transfer_failed,   // ended, the device is done with the destination; number: driver status
  indeterminate,     // fate unknown; the bytes stay held
  refused,           // the backend declares that an unmap changed nothing
  backend,           // the provider's failure; number: driver status
  protocol,          // a peer sent what it must not
  version_mismatch,  // numbers: ours, theirs
};

/// Stable identifier for JSON and traces: "budget_exceeded".
std::string_view name_of(error_code code) noexcept;
/// What a caller can do about it, one sentence.
std::string_view advice_for(error_code code) noexcept;

struct error {
  error_code code = error_code::invalid_state;
  /// Name of the operation that failed; a string literal ("pinned.alloc").
  const char* operation = "";
  /// Generation, incarnation, peer or region the error is about; 0 = none.
  std::uint64_t identity = 0;
  /// Meaning by code, see `error_code`.
  std::uint64_t numbers[3] = {0, 0, 0};
  /// The provider's words, cut to fit, always terminated.
  char words[64] = {};

  /// Copies as much of `text` as fits.
  void set_words(std::string_view text) noexcept;
  /// "pinned.alloc: budget_exceeded (requested 1, registered 2, budget 3): words; advice".
  std::string text() const;
};

template <class T>
using result = std::expected<T, error>;

/// Shorthand for returning an error.
std::unexpected<error> fail(error_code code, const char* operation, std::uint64_t identity = 0, std::uint64_t a = 0,
                            std::uint64_t b = 0, std::uint64_t c = 0) noexcept;
/// As above, with the provider's words.
std::unexpected<error> fail_with_words(error_code code, const char* operation, std::string_view words,
                                       std::uint64_t identity = 0, std::uint64_t a = 0) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI
