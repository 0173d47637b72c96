// What a peer says about itself: one line through its pipe.
//
// Why this exists: remote references have no serialization of their own. This one is of this program, between two
// runs of the same file.
//
// Ownership   A value. Units: bytes. Threading: any. Failure: a line that is none is no offer.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/peer.hpp>

#include <optional>
#include <string>

namespace holdfast::smoke {

struct offer {
  std::string address;
  peer_id who;
  remote_reference memory;
};

std::string to_line(const offer& what);
std::optional<offer> parse_offer(const std::string& line);

}  // namespace holdfast::smoke
