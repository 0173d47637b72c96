// Gate, turn and generation against models: any order of commands by one thread, every answer after each step.
#include <properties/in_world.hpp>

#include <holdfast/base/gate.hpp>
#include <holdfast/base/generation.hpp>
#include <holdfast/base/turn.hpp>
#include <holdfast/platform/thread.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <set>

namespace holdfast::properties {

namespace {

// The body of the property outlives gate, turn and tasks.
task<result<bool>> drained(task_context, gate* g, platform::time_point deadline) {
  auto done = co_await g->drain(deadline);
  co_return done;
}

struct drain_seen final : task_completion<result<bool>> {
  std::optional<bool> answer;
  void completed(result<bool> value) noexcept override { answer = value.value_or(false); }
  void dropped() noexcept override { answer = false; }
};

struct taker final : task_completion<result<turn::holder>> {
  explicit taker(unsigned n) : number(n) {}
  unsigned number;
  intrusive_ptr<cancellation> asked = cancellation::make();
  bool ended = false;
  turn::holder held;
  void completed(result<turn::holder> value) noexcept override {
    ended = true;
    if (value) held = std::move(*value);
  }
  void dropped() noexcept override { ended = true; }
};

task<result<turn::holder>> take(task_context, turn* t) {
  auto held = co_await t->take();
  if (!held) co_return fail(error_code::cancelled, "take");
  co_return std::move(*held);
}

// Lets the executor do what it has; with the quiet strategy a yield gives way to every other fiber.
void settle() {
  for (int i = 0; i < 8; ++i) platform::yield();
}

}  // namespace

RC_GTEST_PROP(BaseGate, AdmitsUntilClosedAndDrainsWhenEmpty, ()) {
  const auto list = *commands(5, 8);
  model_run run;
  run.run([&](platform::host& host) {
    event_log log(host.clock());
    frame_pool frames(0);
    const task_environment environment(host.executor(), host.clock(), log, frames);
    bool closed = false;
    std::vector<gate::ticket> inside;
    std::deque<drain_seen> drains;
    gate g(7, log);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const command& c = list[i];
      switch (c.kind) {
        case 0:
        case 1: {
          auto ticket = g.enter();
          run.expect(static_cast<bool>(ticket) == !closed, "an open gate admits, a closed one does not", i);
          if (ticket) inside.push_back(std::move(ticket));
          break;
        }
        case 2:
          if (inside.empty()) break;
          inside.erase(inside.begin() + static_cast<std::ptrdiff_t>(c.a % inside.size()));
          break;
        case 3:
          if (c.a < 6) break;
          g.close();
          closed = true;
          break;
        case 4:
          start_here(drained(task_context(environment, "drain"), &g, c.a < 2 ? host.clock().now() : platform::never),
                     drains.emplace_back());
          break;
      }
      const bool empty = closed && inside.empty();
      settle();
      run.expect(g.closed() == closed && g.in_flight() == inside.size(), "the gate counts as the model does", i);
      run.expect(g.drain_blocking(host.clock().now()) == empty, "drained is closed and empty", i);
      for (const auto& each : drains)
        if (each.answer && *each.answer) run.expect(empty, "no drain ends before the gate is closed and empty", i);
      if (empty)
        for (const auto& each : drains) run.expect(each.answer.has_value(), "no drain waits for what has happened", i);
    }
    g.close();
    inside.clear();
    run.expect(g.drain_blocking(platform::never), "it drains in the end", list.size());
    settle();
    for (const auto& each : drains) run.expect(each.answer.has_value(), "nobody waits for ever", list.size());
    run.expect(frames.frames_out() == 0, "no frame is left", list.size());
  });
  RC_ASSERT(run.events.count(event_id::gate_closed) == 1u);
  RC_ASSERT(run.events.count(event_id::gate_drained) == 1u);
}

RC_GTEST_PROP(BaseTurn, IsHeldByOneAndServedInOrder, ()) {
  const auto list = *commands(4, 8);
  model_run run;
  run.run([&](platform::host& host) {
    event_log log(host.clock());
    frame_pool frames(0);
    const task_environment environment(host.executor(), host.clock(), log, frames);
    std::deque<taker> takers;
    turn t;
    std::deque<unsigned> queue;  // who waits
    constexpr unsigned nobody = ~0u;
    unsigned holder = nobody;
    const auto pass_on = [&] {
      holder = nobody;
      if (queue.empty()) return;
      holder = queue.front();
      queue.pop_front();
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
      const command& c = list[i];
      switch (c.kind) {
        case 0:
        case 1: {
          taker& mine = takers.emplace_back(static_cast<unsigned>(takers.size()));
          start_here(take(task_context(environment, "take", mine.asked.get()), &t), mine);
          if (holder != nobody)
            queue.push_back(mine.number);
          else
            holder = mine.number;
          break;
        }
        case 2:
          if (holder == nobody) break;
          takers[holder].held.release();
          pass_on();
          break;
        case 3: {
          if (queue.empty()) break;
          const auto which = queue.begin() + static_cast<std::ptrdiff_t>(c.a % queue.size());
          takers[*which].asked->request();
          queue.erase(which);
          break;
        }
      }
      settle();
      run.expect(t.taken() == (holder != nobody) && t.waiting() == queue.size(), "the turn counts as the model does",
                 i);
      for (const taker& each : takers) {
        run.expect(static_cast<bool>(each.held) == (holder == each.number), "exactly the model's holder has it", i);
        const bool waits = std::find(queue.begin(), queue.end(), each.number) != queue.end();
        run.expect(each.ended == !waits, "who does not wait was told", i);
      }
    }
    while (holder != nobody) {
      takers[holder].held.release();
      pass_on();
      settle();
    }
    run.expect(!t.taken() && frames.frames_out() == 0, "nobody has it in the end", list.size());
  });
}

RC_GTEST_PROP(BaseGeneration, NumbersRiseFromTheFirstAndAreNeverZero, ()) {
  const std::uint64_t first = 1 + *rc::gen::inRange<std::uint64_t>(0, 1'000'000'000'000);
  const unsigned count = *rc::gen::inRange(0u, 200u);
  generation source(first);
  for (unsigned i = 0; i < count; ++i) RC_ASSERT(source.issue() == first + i);
  RC_ASSERT(source.issued() == count);
}

}  // namespace holdfast::properties
