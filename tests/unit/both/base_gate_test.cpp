// Gate and turn: what is admitted, when a drain ends, who has the turn. With real threads the races are tried often;
// in the simulator the seeds do it.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/gate.hpp>
#include <holdfast/base/turn.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace holdfast::base_test {

namespace {

// The test outlives gate, turn and tasks, and waits for the tasks.
task<result<bool>> drained(task_context, gate* g, platform::time_point deadline) {
  auto done = co_await g->drain(deadline);
  co_return done;
}

struct log_of_turns {
  std::vector<int> order;
  counter inside;
};

task<result<wait_end>> take_and_note(task_context, turn* t, log_of_turns* notes, int who,
                                     platform::time_point deadline) {
  auto held = co_await t->take(deadline);
  if (!held) co_return held.error();
  // Guarded by the turn itself.
  notes->order.push_back(who);
  co_return wait_end::signaled;
}

task<result<wait_end>> take_and_leave_on_another_thread(task_context, turn* t, std::shared_ptr<turn::holder> keep) {
  auto held = co_await t->take();
  if (!held) co_return held.error();
  *keep = std::move(*held);
  co_return wait_end::signaled;
}

}  // namespace

TEST(Gate, AdmitsUntilItIsClosedAndCountsWhoIsInside) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    gate g(1, at.log);
    auto first = g.enter();
    auto second = g.enter();
    expect(first && second && g.in_flight() == 2, "two are inside");
    auto moved = std::move(first);
    expect(!first && g.in_flight() == 2, "a moved ticket is one ticket");
    second.leave();
    second.leave();
    expect(g.in_flight() == 1, "leaving twice is leaving once");
    g.close();
    g.close();
    expect(g.closed() && !g.enter() && g.in_flight() == 1, "a closed gate refuses and forgets the attempt");
    expect(!g.drain_blocking(at.in(millisecond)), "it is not empty by the deadline");
    moved = gate::ticket();
    expect(g.drain_blocking(platform::never), "it is empty");
  });
}

TEST(Gate, AnOpenGateIsNotDrainedThoughItIsEmpty) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    gate g(1, at.log);
    expect(!g.drain_blocking(at.in(millisecond)), "empty is not drained");
    kept_completion<result<bool>> ended;
    expect(start(drained(at.context(), &g, at.in(millisecond)), ended), "a task begins");
    expect(!ended.wait().value_or(true), "a drain of an open gate ends at its deadline");
  });
}

TEST(Gate, EveryDrainerIsWokenByTheLastOneOut) {
  run_on_side(
      [](platform::host& host) {
        surroundings at(host);
        for (unsigned round = 0; round < effort(1'000, 1); ++round) {
          gate g(1, at.log);
          kept_completion<result<bool>> ended[2];
          {
            team others;
            for (unsigned member = 0; member < 2; ++member)
              others.start([&, ticket = g.enter()]() mutable { ticket.leave(); });
            others.start([&] { expect(g.drain_blocking(platform::never), "a blocked drainer is woken"); });
            for (auto& each : ended)
              expect(start_here(drained(at.context(), &g, platform::never), each), "a task begins");
            g.close();
          }
          for (auto& each : ended) expect(each.wait().value_or(false), "a waiting drainer is woken");
        }
        expect(at.frames.frames_out() == 0, "no frame is left");
      },
      2);
}

TEST(Gate, NobodyIsInsideAfterADrain) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    for (unsigned round = 0; round < effort(1'000, 1); ++round) {
      gate g(1, at.log);
      platform::atomic<int> inside{0};
      team others;
      for (unsigned member = 0; member < 2; ++member)
        others.start([&] {
          for (unsigned i = 0; i < effort(20, 2); ++i) {
            const auto ticket = g.enter();
            if (!ticket) continue;
            inside.fetch_add(1);
            inside.fetch_sub(1);
          }
        });
      g.close();
      expect(g.drain_blocking(platform::never), "it drains");
      expect(inside.load() == 0, "nobody is inside a drained gate");
      others.join();
      expect(inside.load() == 0, "and nobody comes in afterwards");
    }
  });
}

TEST(Gate, MayBeDestroyedOnceADrainAnsweredTrue) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    for (unsigned round = 0; round < effort(1'000, 1); ++round) {
      auto g = std::make_unique<gate>(1, at.log);
      team others;
      others.start([ticket = g->enter()]() mutable { ticket.leave(); });
      g->close();
      expect(g->drain_blocking(platform::never), "it drains");
      g.reset();
      others.join();
    }
  });
}

TEST(Gate, ACancelledDrainEnds) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    gate g(1, at.log);
    auto asked = cancellation::make();
    kept_completion<result<bool>> ended;
    expect(start(drained(at.context("test", asked.get()), &g, platform::never), ended), "a task begins");
    asked->request();
    expect(!ended.wait().value_or(true), "it says that the gate is not drained");
  });
}

TEST(Gate, StopsTheProcessWhenItIsDestroyedWithTicketsOut) {
  const auto seen = stop_on_side([](platform::host& host) {
    surroundings at(host);
    std::optional<gate> g(std::in_place, 1, at.log);
    const auto ticket = g->enter();
    g.reset();
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("tickets out"), std::string::npos) << seen.said;
}

TEST(Turn, IsHeldByOneAndPassedOnInOrder) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    turn t;
    log_of_turns notes;
    auto first = t.try_take();
    expect(first && !t.try_take() && t.taken(), "one has it");
    kept_completion<result<wait_end>> ended[3];
    for (int i = 0; i < 3; ++i)
      expect(start_here(take_and_note(at.context(), &t, &notes, i, platform::never), ended[i]), "a task begins");
    expect(t.waiting() == 3, "three wait");
    first.release();
    for (auto& each : ended) expect(each.wait().value_or(wait_end::cancelled) == wait_end::signaled, "each has a turn");
    expect(notes.order == std::vector<int>{0, 1, 2}, "first come, first served");
    expect(!t.taken() && t.waiting() == 0, "nobody has it in the end");
  });
}

TEST(Turn, WhoGivesUpIsOutOfTheQueueAndTheNextIsServed) {
  run_on_side(
      [](platform::host& host) {
        surroundings at(host);
        for (unsigned round = 0; round < effort(500, 1); ++round) {
          turn t;
          log_of_turns notes;
          auto first = t.try_take();
          auto asked = cancellation::make();
          kept_completion<result<wait_end>> cancelled;
          kept_completion<result<wait_end>> late;
          kept_completion<result<wait_end>> patient;
          expect(
              start_here(take_and_note(at.context("test", asked.get()), &t, &notes, 0, platform::never), cancelled) &&
                  start_here(take_and_note(at.context(), &t, &notes, 1, at.in(platform::duration(20'000))), late) &&
                  start_here(take_and_note(at.context(), &t, &notes, 2, platform::never), patient),
              "tasks begin");
          {
            team others;
            others.start([&] { asked->request(); });
            others.start([&, held = std::move(first)]() mutable { held.release(); });
          }
          expect(patient.wait().value_or(wait_end::cancelled) == wait_end::signaled, "the patient one has its turn");
          std::vector<int> served;
          if (cancelled.wait().value_or(wait_end::timed_out) == wait_end::signaled) served.push_back(0);
          if (late.wait().value_or(wait_end::cancelled) == wait_end::signaled) served.push_back(1);
          served.push_back(2);
          expect(notes.order == served, "who was told that it has the turn had it, in order, and nobody else");
          expect(!t.taken() && t.waiting() == 0, "nobody has it in the end");
        }
      },
      2);
}

TEST(Turn, MayBeReleasedOnAnotherThreadThanItWasTakenOn) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    turn t;
    auto keep = std::make_shared<turn::holder>();
    kept_completion<result<wait_end>> ended;
    expect(start(take_and_leave_on_another_thread(at.context(), &t, keep), ended), "a task begins");
    expect(ended.wait().value_or(wait_end::cancelled) == wait_end::signaled && *keep && t.taken(), "it has the turn");
    team others;
    others.start([keep] { keep->release(); });
    others.join();
    expect(!t.taken(), "it is free");
  });
}

TEST(Turn, AHandOverToADroppedTaskIsPassedOn) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    turn t;
    log_of_turns notes;
    auto first = t.try_take();
    kept_completion<result<wait_end>> ended;
    expect(start_here(take_and_note(at.context(), &t, &notes, 0, platform::never), ended), "a task begins");
    host.stop();
    first.release();
    expect(ended.wait_dropped(), "its executor was stopped");
    expect(!t.taken() && notes.order.empty(), "the turn is not lost with it");
  });
}

}  // namespace holdfast::base_test
