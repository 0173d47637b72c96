#include <holdfast/platform/abi.hpp>

#include "smoke/serve.hpp"

#include "smoke/node.hpp"
#include "smoke/offer.hpp"
#include "smoke/pattern.hpp"
#include "smoke/processes.hpp"

#include <holdfast/transport/transport.hpp>

#include <unistd.h>

#include <cerrno>

namespace holdfast::smoke {

namespace {

bool say(const std::string& line) {
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t wrote = ::write(offer_descriptor, line.data() + at, line.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += static_cast<std::size_t>(wrote);
  }
  return true;
}

void wait_for_the_end_of_input() {
  char some[64];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, some, sizeof some);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

}  // namespace

int serve(const options& what) {
  pinned::settings values;
  values.initial_arena_bytes = pinned::granule_bytes;
  values.registered_bytes_budget = what.bytes + (std::uint64_t{64} << 20);
  auto opened = node::open(device_kind::ucx, values, what.ucx_library);
  if (!opened) {
    say(sentence(opened.error()) + "\n");
    return 1;
  }
  node& own = **opened;
  auto memory = own.alloc(what.bytes);
  if (!memory) {
    say(memory.error() + "\n");
    return 1;
  }
  write_pattern(memory->bytes(), *what.serve_seed);
  const auto reference = memory->remote();
  if (!reference) {
    say("no reference to memory that was just allocated\n");
    return 1;
  }
  if (!say(to_line({std::string(own.peers().listen_address()), own.peers().self(), *reference}))) return 1;
  wait_for_the_end_of_input();
  memory->reset();
  const auto ended = own.shut_down(std::chrono::seconds(5), patience);
  return ended && ended->report.clean() ? 0 : 1;
}

}  // namespace holdfast::smoke
