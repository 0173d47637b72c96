// Handlers: called once, on the right executor, never inline, cancelled through their slot; and the token that blocks.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/block.hpp>
#include <holdfast/base/completion.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace holdfast::base_test {

namespace {

using answer = result<std::unique_ptr<int>>;
using answer_completion = completion<answer>;

// An operation as a subsystem has it: it keeps the completion of its one caller.
class operation {
 public:
  explicit operation(platform::host& host) : host_(host) {}
  template <class Token>
  auto async_ask(Token&& token) {
    return boost::asio::async_initiate<Token, void(answer)>(
        [this](auto handler) {
          held =
              answer_completion::start(answer_completion::handler_type(std::move(handler)), host_.executor(), "test");
          started.add();
        },
        token);
  }
  std::optional<answer_completion> held;
  counter started;

 private:
  platform::host& host_;
};

answer some(int value) { return std::make_unique<int>(value); }

// A foreign executor that keeps what it is given, until it is told to run it, or refuses by throwing.
struct foreign_context final : boost::asio::execution_context {
  ~foreign_context() { shutdown(); }
  std::vector<std::move_only_function<void()>> kept;
  counter given;
  bool refuses = false;
};
struct foreign_executor {
  foreign_context* context;
  template <class F>
  void execute(F&& f) const {
    if (context->refuses) throw std::bad_alloc();
    context->kept.emplace_back(std::forward<F>(f));
    context->given.add();
  }
  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept { return *context; }
  bool operator==(const foreign_executor&) const noexcept = default;
};

}  // namespace

TEST(Completion, CallsTheHandlerOnceOnTheRuntimesExecutorAndNeverInline) {
  run_on_side([](platform::host& host) {
    operation op(host);
    counter called;
    const auto here = platform::this_thread_number();
    op.async_ask([&](answer got) {
      expect(got && **got == 4, "the value arrives");
      expect(platform::this_thread_number() != here, "not on the thread that completes");
      called.add();
    });
    op.held->complete(some(4));
    expect(!*op.held, "a completion is spent");
    called.wait_for(1);
    host.stop();
    expect(called.value() == 1, "once");
  });
}

TEST(Completion, PrefersTheHandlersOwnExecutor) {
  run_on_side([](platform::host& host) {
    operation op(host);
    counter called;
    foreign_context context;
    op.async_ask(boost::asio::bind_executor(foreign_executor{&context}, [&](answer got) {
      expect(got && **got == 4, "the value arrives");
      called.add();
    }));
    op.held->complete(some(4));
    context.given.wait_for(1);
    host.stop();
    expect(called.value() == 0 && context.kept.size() == 1, "it waits for its own executor");
    context.kept.front()();
    expect(called.value() == 1, "once");
  });
}

TEST(Completion, IsNotCalledElsewhereIfTheRuntimesExecutorStopsBeforeItReachesTheHandlersOwn) {
  run_on_side([](platform::host& host) {
    operation op(host);
    counter called;
    foreign_context context;
    op.async_ask(boost::asio::bind_executor(foreign_executor{&context}, [&](answer) { called.add(); }));
    op.held->complete(some(4));
    host.stop();
    expect(called.value() == 0 && context.kept.size() <= 1, "it is on its own executor, or gone");
  });
}

TEST(Completion, DeliversItselfIfTheHandlersExecutorRefuses) {
  run_on_side([](platform::host& host) {
    operation op(host);
    counter called;
    foreign_context context;
    context.refuses = true;
    op.async_ask(boost::asio::bind_executor(foreign_executor{&context}, [&](answer got) {
      expect(got && **got == 4, "the value arrives");
      called.add();
    }));
    op.held->complete(some(4));
    called.wait_for(1);
    host.stop();
    expect(called.value() == 1, "once");
  });
}

TEST(Completion, DestroysTheHandlerUncalledWhenItIsGivenUp) {
  run_on_side([](platform::host& host) {
    operation op(host);
    auto alive = std::make_shared<int>(1);
    const std::weak_ptr<int> seen = alive;
    op.async_ask([alive = std::move(alive)](answer) { expect(false, "it is not called"); });
    op.held.reset();
    expect(seen.expired(), "it is gone");
  });
}

TEST(Completion, ARequestOnTheSlotAsksTheOperationAlsoLongAfterwards) {
  run_on_side([](platform::host& host) {
    counter called;
    boost::asio::cancellation_signal signal;
    {
      operation op(host);
      op.async_ask(boost::asio::bind_cancellation_slot(signal.slot(), [&](answer) { called.add(); }));
      expect(!op.held->asked().requested(), "nobody asked yet");
      signal.emit(boost::asio::cancellation_type::partial);
      expect(op.held->asked().requested(), "the operation is asked");
      op.held->complete(some(1));
    }
    called.wait_for(1);
    signal.emit(boost::asio::cancellation_type::terminal);
    host.stop();
    expect(called.value() == 1, "the handler was called once, and a late request is harmless");
  });
}

TEST(Block, WaitsForTheAnswer) {
  run_on_side([](platform::host& host) {
    operation op(host);
    team others;
    others.start([&] {
      op.started.wait_for(1);
      op.held->complete(some(9));
    });
    const auto got = op.async_ask(block);
    expect(got && **got == 9, "the answer is the value of the call");
  });
}

TEST(Block, AnOperationThatGoesAwayWithoutAnAnswerIsAnError) {
  run_on_side([](platform::host& host) {
    operation op(host);
    team others;
    others.start([&] {
      op.started.wait_for(1);
      op.held.reset();
    });
    const auto got = op.async_ask(block);
    expect(!got && got.error().code == error_code::shutting_down, "whoever waits is told");
  });
}

TEST(Block, TakesOtherSignatures) {
  run_on_side([](platform::host&) {
    boost::asio::async_initiate<const block_t&, void()>([](auto handler) { std::move(handler)(); }, block);
    const auto [a, b] = boost::asio::async_initiate<const block_t&, void(int, long)>(
        [](auto handler) { std::move(handler)(1, 2L); }, block);
    expect(a == 1 && b == 2, "two values are a tuple");
  });
}

}  // namespace holdfast::base_test
