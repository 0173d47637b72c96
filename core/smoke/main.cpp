// holdfast-smoke: does this machine behave as the core assumes?
#include <holdfast/platform/abi.hpp>

#include "smoke/checks.hpp"
#include "smoke/machine.hpp"
#include "smoke/node.hpp"
#include "smoke/options.hpp"
#include "smoke/parts.hpp"
#include "smoke/processes.hpp"
#include "smoke/recording.hpp"
#include "smoke/serve.hpp"
#include "tool/output.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

namespace {

using namespace holdfast::smoke;

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int run(const options& given) {
  // Destroyed bottom-up: nobody may be interrupted any more when the children's list goes.
  process_group children;
  const interruptions watched(children);
  recording record(children);
  if (!given.record.empty())
    if (const std::string wrong = record.open(given.record); !wrong.empty()) throw usage_error{"--record: " + wrong};

  std::FILE* const out = holdfast::tool::take_standard_output();
  checks found(given.json ? nullptr : out);
  surroundings s{given, found, children, record};
  if (given.host) check_host(s);
  if (given.ucx) check_ucx(s);
  if (given.verbs) found.absent("verbs", "device", "not in this version");
  if (given.cuda) found.absent("cuda", "device", "not in this version");
  if (given.json) std::fprintf(out, "%s\n", found.to_json(machine_facts()).c_str());
  int code = found.exit_code();
  if (std::fflush(out) != 0 || std::ferror(out) != 0) {
    std::fprintf(stderr, "holdfast-smoke: standard output cannot be written\n");
    code = exit_failed;
  }
  if (const std::string wrong = record.finish(found); !wrong.empty()) {
    std::fprintf(stderr, "holdfast-smoke: %s\n", wrong.c_str());
    code = exit_failed;
  }
  if (node::left_alone()) {
    // Threads of a core that did not end still run: nothing may be taken from under them.
    children.kill_all();
    ::_exit(code);
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  try {
    const auto given = parse(argc, argv);
    if (!given) return 0;
    if (given->serve_seed) {
      end_with_parent(given->serve_parent);
      return serve(*given);
    }
    return run(*given);
  } catch (const usage_error& e) {
    std::fprintf(stderr, "holdfast-smoke: %s\n", e.sentence.c_str());
    return exit_usage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "holdfast-smoke: %s\n", e.what());
    return exit_failed;
  }
}
