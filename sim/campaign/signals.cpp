#include <sim/campaign/signals.hpp>

#include <csignal>
#include <unistd.h>

namespace holdfast::sim {

namespace {

volatile std::sig_atomic_t requests = 0;

void on_signal(int number) {
  requests = requests + 1;
  if (requests > 1) _exit(128 + number);
}

}  // namespace

void listen_to_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_requested() noexcept { return requests != 0; }

}  // namespace holdfast::sim
