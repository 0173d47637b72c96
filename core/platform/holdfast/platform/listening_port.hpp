// Keeps newcomers out of a port that this process listens on and is about to leave.
//
// Why this exists: a library that accepted a socket and has heard nothing of it yet follows it to its listener when the first
// word comes, and may do so after that listener was destroyed. It has no call that ends such sockets, but they are this
// process's own: the system can be told to let nobody in any more, and to bring no more words of those who are in.
//
// Ownership   Sockets stay their library's, and are neither closed nor shut down: it would take that for news of a peer.
// Units       Sockets.
// Threading   One thread at a time for one address; the library's own threads go on meanwhile.
// Failure     What the system does not show (no /proc) is not found: the answer is 0, and nothing is worse than before.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <sys/socket.h>

#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// From here on what clients send to the listening socket at `address` (with its port) is dropped, also the end of a
/// handshake: nobody gets in any more, and those who try find nobody once the port is closed. Sockets that were accepted are
/// as they were. Source: socket(7), SO_ATTACH_FILTER.
void let_nobody_in(const sockaddr_storage& address) noexcept;

/// As `let_nobody_in`; and what is sent to sockets that were accepted from there is dropped as well. Answers how many wait to
/// be accepted, or have said something that was not read yet; takes some hundred microseconds, in which the library may get
/// to them. To be called again until the answer is 0: then nothing of this port will be read any more. Source: tcp(7),
/// FIONREAD, and TCP_INFO, whose `tcpi_unacked` of a listening socket is its backlog.
std::size_t shut_out_newcomers(const sockaddr_storage& address) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
