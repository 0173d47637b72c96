#include <holdfast/platform/abi.hpp>

#include <holdfast/base/completion.hpp>

#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>

namespace holdfast::inline HOLDFAST_ABI::detail {

boost::asio::any_completion_executor with_work(const boost::asio::any_completion_executor& target) {
  return boost::asio::prefer(target, boost::asio::execution::outstanding_work.tracked);
}

completion_record::completion_record(platform::executor fallback, intrusive_ptr<cancellation> asked,
                                     boost::asio::any_completion_executor target) noexcept
    : direct_(fallback), asked_(std::move(asked)) {
  if (const platform::executor* const ours = target.target<platform::executor>())
    direct_ = *ours;
  else
    foreign_ = std::move(target);
}

void completion_record::deliver() noexcept {
  if (!direct_.post(*this)) delete this;
}

// What a foreign executor carries. It may destroy it uncalled, also while it throws.
class completion_record::carried {
 public:
  explicit carried(completion_record& record) noexcept : record_(&record) {}
  carried(carried&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  ~carried() {
    if (record_ != nullptr) record_->let_go();
  }
  void operator()() noexcept { std::exchange(record_, nullptr)->invoke(); }

 private:
  completion_record* record_;
};

void completion_record::run() noexcept {
  if (!foreign_) return invoke();
  const boost::asio::any_completion_executor target = std::move(foreign_);
  shares_.increment();
  try {
    target.execute(carried(*this));
  } catch (...) {
    return invoke();
  }
  let_go();
}

}  // namespace holdfast::inline HOLDFAST_ABI::detail
