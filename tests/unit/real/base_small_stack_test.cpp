// A million awaits on a thread whose whole stack is 32 KiB: a chain of resumptions on the stack would overrun it.
#include <tests/unit/both/base_support.hpp>

#include <gtest/gtest.h>

#include <pthread.h>

namespace holdfast::base_test {

namespace {

task<result<unsigned>> leaf(task_context, unsigned value) { co_return value + 1; }

task<result<unsigned>> loop(task_context context, unsigned count) {
  unsigned value = 0;
  for (unsigned i = 0; i < count; ++i) {
    auto next = co_await leaf(context, value);
    if (!next) co_return std::unexpected(next.error());
    value = *next;
  }
  co_return value;
}

struct argument {
  surroundings* at;
  kept_completion<result<unsigned>> ended;
};

void* body(void* given) {
  auto& it = *static_cast<argument*>(given);
  start_here(loop(it.at->context(), 1'000'000), it.ended);
  return nullptr;
}

}  // namespace

TEST(Task, AMillionAwaitsFitOnASmallStack) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    argument it{&at, {}};
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 32 * 1024), 0);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, &body, &it), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(it.ended.wait().value_or(0), 1'000'000u);
  });
}

}  // namespace holdfast::base_test
