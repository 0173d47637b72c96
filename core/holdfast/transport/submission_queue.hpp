// The way into the progress thread: commands from any thread, taken by one.
//
// Why this exists: nobody but the progress thread may touch the library, and nobody may wait for it. Commands link
// memory that exists already, so handing one over cannot fail for want of memory; how many there can be is bounded
// by the operation table and by the number of connections.
//
// Ownership   A pushed command belongs to the queue until it is taken; the taker executes or refuses it, once.
// Threading   `push` and `pending` from any thread, `take_all` and `close` by the progress thread.
// Failure     `push` on a closed queue answers false and leaves the command with the caller. Test and push are one
//             step, so no command can slip in behind the close.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/atomic.hpp>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// Something for the progress thread to do.
class command {
 public:
  command() noexcept = default;
  command(const command&) = delete;
  command& operator=(const command&) = delete;

  /// On the progress thread. The command may destroy itself.
  virtual void execute() noexcept = 0;
  /// On the progress thread, instead of `execute`: the transport closes and takes no new work.
  virtual void refuse() noexcept = 0;

  /// Link of the queue that holds the command; belongs to that queue.
  command* next_command = nullptr;

 protected:
  ~command() = default;
};

class submission_queue {
 public:
  /// False: closed. Sequentially consistent, so that a pusher that looks at the sleeper's flag afterwards, and a
  /// sleeper that sets it and looks here, cannot both see the old state.
  bool push(command& item) noexcept;
  /// Whether something waits. Sequentially consistent.
  bool pending() const noexcept;
  /// Everything that waits, oldest first, linked by `next_command`; null if nothing does.
  command* take_all() noexcept;
  /// Refuses all later pushes; answers with what still waited, oldest first.
  command* close() noexcept;

 private:
  static command* oldest_first(command* newest) noexcept;
  // A mark that is compared and never followed.
  command* closed() const noexcept { return reinterpret_cast<command*>(const_cast<submission_queue*>(this)); }

  // Newest first.
  platform::atomic<command*> head_{nullptr};
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
