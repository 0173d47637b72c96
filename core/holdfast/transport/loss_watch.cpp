#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/loss_watch.hpp>

#include <utility>

namespace holdfast::inline HOLDFAST_ABI::transport {

void loss_notice::send(std::unique_ptr<loss_notice> notice, const platform::executor& executor,
                       const peer_loss& what) noexcept {
  notice->what_ = what;
  if (executor.post(*notice)) static_cast<void>(notice.release());
}

void loss_notice::run() noexcept {
  (*told_)(what_);
  delete this;
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
