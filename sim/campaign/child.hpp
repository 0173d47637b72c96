// Work that may kill its process, done in another one.
//
// Why this exists: the core under test may crash. The program that reports it must not.
//
// Threading   The caller has one thread: it forks.
// Failure     `death`: how the child ended if it did not answer.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>

namespace holdfast::sim {

struct child_answer {
  std::string text;   // what the work returned
  std::string death;  // "SIGSEGV", "exit 1"; empty if it answered
};

/// Runs `work` in a forked child and waits for its answer. `limit_seconds` 0: for ever. Standard output of the child is
/// this program's. Asked to stop (see signals.hpp), the child is ended: `death` is "SIGKILL" then.
child_answer in_child(const std::function<std::string()>& work, unsigned limit_seconds = 0);

/// Forks; the child dies with its parent, ignores Ctrl-C (the parent hears it), runs `work` and exits.
pid_t fork_child(const std::function<void()>& work);
/// "" for a clean end, else "SIGSEGV" or "exit 1", of a status from waitpid.
std::string death_of(int status);

}  // namespace holdfast::sim
