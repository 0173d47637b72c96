// How an operation keeps its caller's handler and calls it, once.
//
// Why this exists: the answer comes from a progress thread that may neither allocate nor run foreign code, perhaps
// after the caller stopped caring. What delivering needs is allocated when the operation starts.
//
// Where       On the handler's associated executor, else on the runtime's platform executor; never inline, never on
//             Asio's system executor. A platform executor's delivery allocates nothing. Any other executor is foreign
//             code: the platform executor calls it, and delivers itself if that throws.
// Cancelling  If the handler has a connected cancellation slot, any request on it asks the operation's `cancellation`.
//             The slot keeps a share of that small record and nothing else; core never touches the slot after `start`,
//             so emitting late, from another thread, is harmless.
// Ownership   A `completion` owns the handler. Destroying it without `complete` destroys the handler uncalled.
// Threading   `complete` from any thread.
// Failure     No memory at `start` (site "base.completion"): the handler is told out_of_memory; see there.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/cancellation.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/work_item.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/ref_count.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>

#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace detail {

/// The part of a delivery that does not depend on the handler's signature.
class completion_record : public work_item {
 public:
  cancellation& asked() noexcept { return *asked_; }
  /// Hands the record to its executor. It destroys itself.
  void deliver() noexcept;

  virtual ~completion_record() = default;

 protected:
  completion_record(platform::executor fallback, intrusive_ptr<cancellation> asked,
                    boost::asio::any_completion_executor target) noexcept;
  void let_go() noexcept {
    if (shares_.decrement()) delete this;
  }

 private:
  class carried;
  // Lets go of the record, and calls the handler after that.
  virtual void invoke() noexcept = 0;
  void run() noexcept final;
  void drop() noexcept final { delete this; }

  platform::executor direct_;
  intrusive_ptr<cancellation> asked_;
  boost::asio::any_completion_executor foreign_;  // empty if the handler wants a platform executor
  platform::ref_count shares_;                    // two while a foreign executor is being called
};

/// The executor with outstanding work, so that a foreign context stays alive while the operation runs.
boost::asio::any_completion_executor with_work(const boost::asio::any_completion_executor& target);

}  // namespace detail

/// R is a result<U>.
template <class R>
class [[nodiscard]] completion {
 public:
  using handler_type = boost::asio::any_completion_handler<void(R)>;

  /// Takes the handler over. None: there was no memory for the record, and the handler will be told
  /// error_code::out_of_memory with `operation` by an ordinary allocation of Asio's, which may throw std::bad_alloc
  /// into the caller.
  static std::optional<completion> start(handler_type handler, platform::executor fallback, const char* operation);

  completion(completion&&) noexcept = default;
  completion& operator=(completion&&) noexcept = default;

  /// Whether the caller cancelled; awaitables of a task with this cancellation end by it.
  cancellation& asked() noexcept { return record_->asked(); }
  /// Once; the completion is empty afterwards. The handler gets `value` later.
  void complete(R value) noexcept {
    record* const delivered = record_.release();
    delivered->value.emplace(std::move(value));
    delivered->deliver();
  }
  explicit operator bool() const noexcept { return record_ != nullptr; }

 private:
  struct record final : detail::completion_record {
    record(handler_type h, platform::executor fallback, intrusive_ptr<cancellation> asked,
           boost::asio::any_completion_executor target) noexcept
        : completion_record(fallback, std::move(asked), std::move(target)), handler(std::move(h)) {}
    void invoke() noexcept override {
      handler_type called = std::move(handler);
      R given = std::move(*value);
      let_go();
      std::move(called)(std::move(given));
    }
    handler_type handler;
    std::optional<R> value;
  };
  explicit completion(std::unique_ptr<record> made) noexcept : record_(std::move(made)) {}
  std::unique_ptr<record> record_;
};

template <class R>
std::optional<completion<R>> completion<R>::start(handler_type handler, platform::executor fallback,
                                                  const char* operation) {
  const boost::asio::any_completion_executor target =
      detail::with_work(boost::asio::get_associated_executor(handler, fallback));
  const auto slot = boost::asio::get_associated_cancellation_slot(handler);
  std::unique_ptr<record> made;
  intrusive_ptr<cancellation> asked = cancellation::make();
  if (asked && !platform::heap_fault("base.completion"))
    made.reset(new (std::nothrow) record(std::move(handler), fallback, asked, target));
  if (made == nullptr) {
    fallback.execute([target, called = std::move(handler), operation]() mutable {
      target.execute([called = std::move(called), operation]() mutable {
        std::move(called)(R(fail(error_code::out_of_memory, operation)));
      });
    });
    return std::nullopt;
  }
  if (slot.is_connected())
    boost::asio::cancellation_slot(slot).assign([asked](boost::asio::cancellation_type) { asked->request(); });
  return completion(std::move(made));
}

}  // namespace holdfast::inline HOLDFAST_ABI
