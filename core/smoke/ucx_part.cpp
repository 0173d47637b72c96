#include <holdfast/platform/abi.hpp>

#include "smoke/memory_checks.hpp"
#include "smoke/ucx_stage.hpp"

namespace holdfast::smoke {

namespace {

bool open_stage(ucx_stage& stage) {
  const steady::time_point began = steady::now();
  if (const result<void> opened = stage.open(); !opened) {
    // Only what the machine does not have is absence; anything else did not work.
    if (opened.error().code == error_code::absent)
      stage.with.found.absent(ucx_part, "library", sentence(opened.error()));
    else
      stage.failed("library", sentence(opened.error()));
    return false;
  }
  auto& net = stage.own->peers();
  stage.ok("library", "UCX " + net.versions().text + ", " +
                          std::string(net.get_works() ? "GETs work" : "GETs do not work") + ", listens on " +
                          std::string(net.listen_address()) + "; open after " +
                          time_text((steady::now() - began).count()));
  return true;
}

bool start_peers(ucx_stage& stage) {
  const options& given = stage.with.given;
  const steady::time_point began = steady::now();
  for (unsigned i = 0; i < given.peers; ++i) {
    auto peer = stage.start_peer(given.bytes);
    if (!peer) return stage.failed("peers", peer.error()), false;
    stage.peers.push_back(std::move(*peer));
  }
  stage.ok("peers", count_text(given.peers, "peer") + ", " + bytes_text(given.bytes) + " each, connected after " +
                        time_text((steady::now() - began).count()));
  return true;
}

void end_peers(ucx_stage& stage) {
  constexpr std::string_view name = "peers' books";
  for (auto& peer : stage.peers) {
    const auto status = peer->finish(patience);
    if (!status) return stage.failed(name, "a peer did not end by itself");
    if (*status != 0) return stage.failed(name, "a peer ended with something left");
  }
  stage.ok(name, "every peer gave back what it served and ended with nothing left");
}

}  // namespace

void check_ucx(surroundings& s) {
  {
    ucx_stage stage{s, nullptr, {}, 0, 0};
    if (!open_stage(stage)) return;
    const bool memory_works = check_registration(s.found, ucx_part, *stage.own, std::uint64_t{1} << 20) &&
                              check_growth(s.found, ucx_part, *stage.own, std::uint64_t{1} << 20, 2) &&
                              check_reclaim(s.found, ucx_part, *stage.own, std::uint64_t{1} << 20) &&
                              check_budget(s.found, ucx_part, *stage.own);
    const bool peers_serve = memory_works && start_peers(stage);
    if (peers_serve) {
      check_gets(stage);
      check_cancelled(stage);
      check_killed(stage, "peer killed");
    }
    check_end(stage, shutdown_row, "ucx");
    if (peers_serve) end_peers(stage);
    if (!peers_serve) return;
  }
  {
    // What a death means depends on the lane: once more without shared memory.
    ucx_stage stage{s, nullptr, {}, 500'000, 0};
    if (const result<void> opened = stage.open(false); !opened)
      return stage.failed("peer killed, tcp", sentence(opened.error()));
    check_killed(stage, "peer killed, tcp");
    check_end(stage, "shutdown, tcp", "ucx-tcp");
  }
  // A GET that never ends needs a side of its own: that side ends with it.
  ucx_stage stage{s, nullptr, {}, 1'000'000, 0};
  if (const result<void> opened = stage.open(); !opened) return stage.failed("peer stopped", sentence(opened.error()));
  check_stopped(stage);
}

}  // namespace holdfast::smoke
