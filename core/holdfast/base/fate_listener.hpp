// Whoever waits for an operation whose end may never come.
//
// Why this exists: when a teardown hangs, nobody may touch the operations that are still with the library; their
// records may be ended by it at any moment, or never. Those who wait must be told all the same. So the waiting side is
// an object of its own, with shares of its own: it can be told without the record being looked at again.
//
// Ownership   Counted. An operation and its waiter hold shares.
// Threading   `fate_unknown` from any thread, with no lock held; it may race with the operation's own end, and whoever
//             comes first is believed.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_ptr.hpp>

namespace holdfast::inline HOLDFAST_ABI {

class fate_listener : public ref_counted<fate_listener> {
 public:
  /// The waiter is told `indeterminate`, unless it was told something before.
  virtual void fate_unknown() noexcept = 0;

  fate_listener* next_told = nullptr;  // link of whoever collects listeners

 protected:
  friend class ref_counted<fate_listener>;
  fate_listener() noexcept = default;
  virtual ~fate_listener() = default;
};

}  // namespace holdfast::inline HOLDFAST_ABI
