// Evidence of a witness, without a transport that saw its worker and context go.
//
// Why this exists: checks of the quarantine want every mismatch, also those that no transport of today produces. It is
// the one friend of `evidence` outside of the library.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/quarantine.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI {

struct forged_evidence {
  static evidence transport_gone(std::uint64_t incarnation, std::uint64_t epoch, bool fences_gets) noexcept {
    evidence made(evidence_kind::witness, epoch);
    made.scope_ = incarnation;
    made.gets_fenced_ = fences_gets;
    return made;
  }
};

}  // namespace holdfast::inline HOLDFAST_ABI
