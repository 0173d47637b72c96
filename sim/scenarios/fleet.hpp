// Hosts that run the whole core, and the ops by which a workload drives them.
//
// Why this exists: scenarios differ in what is done and when, not in how a host is put together. A fleet gives each
// host of the plan a runtime as a program would have it (transport over the UCX double, pinned memory on top), runs the
// plan's ops on fibers, and ends every host by a shutdown whose report is held against the books. A host whose shutdown
// could not prove that the device is gone ends as such a process should: it exits at once, and leaves what is left.
//
// A run has two phases. The trouble ends when every host has done its ops, or after `trouble_ns`: then faults stop, links
// heal, and who was stopped goes on, but for hosts that may stay dead. In the calm everything that is owed must end
// within `progress_ns`. Where a fault may keep an op waiting for ever, its host gives up after `patience_ns` as a program
// would: it shuts its core down by a deadline, and everybody who waits must be told.
//
// A host that is started again after a crash runs the ops whose fiber names that life: "a/owner" is of the first,
// "a/owner@2" of the second.
//
// Ops, each with numbers and words by name (`slot` names a buffer of its host, 0 to 63):
//   alloc slot bytes [own]      async_alloc, waited for             try_alloc slot bytes
//   free slot                   drops the buffer                     fill slot seed     writes a pattern
//   check slot                  the pattern must be as it was filled (W-3)
//   publish slot name           the buffer's reference goes on the board, with the pattern that it holds
//   wait name                   waits until it is on the board, or never will be: then ok=0
//   connect host                waits until that host listens        close host [deadline_ns]
//   revoke host                 ends every connection to it by force    declare_dead host: that life never comes again
//   get slot name [must]        fetches into the slot's buffer, waits; on ok the bytes must be the source's (W-9); what an
//                               ended life of the owner published must not come (TP-I10)
//                               must: two that met and that nothing planned can part, so there is a connection (TP-I11)
//   get_start slot name [given_back]  the same without waiting; given_back: the owner may have dropped it, so that nobody
//                               knows what its bytes are
//   await slot [ns]             waits for it, at most so long: then gives up the notification and waits for that
//   cancel slot                 gives up the notification of what was started in the slot
//   alloc_start slot bytes      async_alloc without waiting (await, cancel as above)
//   sleep ns                    crash host    pause host    resume host
//   restart host                a crashed host begins a new life under its name and address
//   partition host to [one_way] nothing from `host` reaches `to`, nor back unless one_way          heal host to
//   slow host to ns             what goes from `host` to `to` takes so much longer; 0: no more
//   shutdown [deadline_ns]      shuts this host's core down now, while others go on
// An op that the core refuses ends with ok=0 and the error's code; that is an outcome, not a violation.
//
// Ownership   The fleet lives in kernel memory for the run. A host's core lives on the stack of its fiber "main" and in
//             its heap, and goes with it.
// Threading   One OS thread.
// Failure     A start-up that the fault plan spoils ends that host early and in order.
#pragma once

#include <sim/scenarios/scenario.hpp>
#include <sim/scenarios/workload.hpp>

#include <holdfast/pinned/settings.hpp>

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

struct fleet_settings {
  std::vector<std::string> hosts;
  /// Whether they are processes of one machine, which may reach each other through its memory.
  bool one_machine = false;
  holdfast::pinned::settings pool{.initial_arena_bytes = 16 * 4096,
                                  .max_arena_bytes = 64 * 4096,
                                  .dedicated_arena_min = 16 * 4096,
                                  .registered_bytes_budget = 256 * 4096};
  /// Whether hosts have a transport that fetches; without, the start-up probe is skipped and GET is absent.
  bool gets = true;
  unsigned executor_threads = 1;
  std::int64_t progress_spin_ns = 20'000;
  /// Hosts with a card for one-sided transfers; between two of them GETs need nobody's progress.
  std::vector<std::string> with_card;
  /// Calls of the library between two looks at what was submitted; 0: as without a setting.
  unsigned progress_batch = 0;
  /// Messages and pieces that one call of the library handles; 0: as without a setting.
  unsigned library_batch = 0;
  /// Bytes of the longest GET that goes over tcp in one piece, and of what one send takes; 0: as without a setting.
  std::size_t get_bytes_max = 0;
  /// Connections that a host may have; 0: as many as its fleet can need.
  std::size_t connections_max = 0;
  /// Keys that a connection keeps unpacked.
  std::size_t keys_max = 64;
  /// Silence under GETs after which a peer is suspected; 0: never.
  std::int64_t suspect_after_ns = 0;
  /// Whether hosts ask to be told of peers that are lost.
  bool watch_losses = false;
  /// Whether hosts start in the calm, so that trouble and faults begin when every host is up.
  bool calm_start = true;
  /// Time that the shutdown at the end of a host gets.
  std::int64_t shutdown_ns = 2'000'000'000;
  /// The longest trouble: longer than any connection attempt, and than a link needs to be given up.
  std::int64_t trouble_ns = 60'000'000'000;
  /// How much longer a host waits for what a fault may have taken away.
  std::int64_t patience_ns = 30'000'000'000;
  /// From the last op of the last host: shutdowns by their deadline, and links that are given up only then.
  std::int64_t progress_ns = 30'000'000'000;
  /// The declared dead: hosts that the calm leaves stopped if they are. Crashed ones stay dead anyway.
  std::vector<std::string> may_stay_dead;
};

/// Builds the hosts and starts them. Keep the answer until the run is over. An error sentence if an op makes no sense.
std::expected<std::shared_ptr<void>, std::string> start_fleet(world& w, const fleet_settings& how, const plan& what);

/// Shorthands for generators.
op make_op(std::string who, std::string what, std::map<std::string, std::int64_t> numbers = {},
           std::map<std::string, std::string> words = {});

}  // namespace holdfast::sim
