#include <sim/campaign/signals.hpp>

#include <csignal>
#include <ctime>
#include <unistd.h>

namespace holdfast::sim {

namespace {

// Written by the handler alone; it runs with both signals blocked.
volatile std::sig_atomic_t requested = 0;
timespec requested_at;

// Who sends a signal to a process and to its group sends it twice at once; a person does not.
constexpr long together_ns = 100'000'000;

void on_signal(int number) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (requested == 0) {
    requested = 1;
    requested_at = now;
    return;
  }
  const long since = (now.tv_sec - requested_at.tv_sec) * 1'000'000'000 + (now.tv_nsec - requested_at.tv_nsec);
  if (since > together_ns) _exit(128 + number);
}

}  // namespace

void listen_to_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_requested() noexcept { return requested != 0; }

}  // namespace holdfast::sim
