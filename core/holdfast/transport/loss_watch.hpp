// Tells the embedder that a peer is gone.
//
// Why this exists: who handed out references to a peer's memory, or waits for its answer by other means, has to learn
// of its end, and the end is learned on the progress thread, where nothing may allocate, fail, or call foreign code. So
// each connection is made with the notice of its loss, which is posted and lives by itself from then on
// (spec/transport 7.7, 8).
//
// Ownership   The handler is shared with the notices under way: it may be called after the transport is gone, until the
//             executor is stopped, so it has to own what it uses or refer to what lives as long.
// Threading   `told` runs on the executor with no lock held; two losses may be told at the same time. It may call the
//             transport; waiting in it for the transport is not allowed.
// Failure     A connection whose notice finds no memory is not made (out_of_memory to who asked for it).
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/peer.hpp>
#include <holdfast/base/work_item.hpp>
#include <holdfast/platform/host.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// In the order of the event `peer_lost`.
enum class loss_reason : std::uint8_t { error, restarted, protocol, declared };

struct peer_loss {
  peer_id peer;  // this life of it
  /// The connection's number, as in the event `peer_lost`.
  std::uint64_t connection = 0;
  loss_reason reason = loss_reason::error;
};

/// Called once for each connection that is lost; an orderly close is no loss. May be empty. Must not throw.
using loss_handler = std::function<void(const peer_loss&)>;

/// Of one connection. Deletes itself when it was told or dropped.
class loss_notice final : public work_item {
 public:
  explicit loss_notice(std::shared_ptr<const loss_handler> told) noexcept : told_(std::move(told)) {}
  ~loss_notice() = default;

  /// Gives the notice to the executor; it is the executor's or gone when this returns.
  static void send(std::unique_ptr<loss_notice> notice, const platform::executor& executor,
                   const peer_loss& what) noexcept;

 private:
  void run() noexcept override;
  void drop() noexcept override { delete this; }

  std::shared_ptr<const loss_handler> told_;
  peer_loss what_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
