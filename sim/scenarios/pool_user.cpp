#include <sim/scenarios/pool_user.hpp>

#include <sim/backend/pattern.hpp>
#include <sim/kernel/fiber.hpp>

#include <holdfast/base/block.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>

#include <utility>

namespace holdfast::sim {

namespace hf = holdfast;

step_result refused_step(const hf::error& why) { return {false, static_cast<std::uint64_t>(why.code)}; }

void sleep_for(world& w, std::int64_t ns) {
  for (const std::int64_t until = w.now() + ns; w.now() < until;) w.block(op_kind::sleep, 0, until);
}

std::optional<std::string> pool_user::inspect(const op& step) {
  if (const std::int64_t slot = step.number("slot"); slot < 0 || slot >= slots_max)
    return "slot " + std::to_string(slot) + " is not in 0..63";
  for (const char* const name : {"bytes", "ns", "deadline_ns", "seed"})
    if (step.number(name) < 0) return "\"" + std::string(name) + "\" is negative";
  return std::nullopt;
}

step_result pool_user::alloc(const op& step) {
  auto got = pool->async_alloc(static_cast<std::uint64_t>(step.number("bytes")),
                               hf::pinned::alloc_options{.own_arena = step.number("own") != 0}, hf::block);
  if (!got) return refused_step(got.error());
  return keep(step, std::move(*got), static_cast<std::uint64_t>(step.number("bytes")));
}

step_result pool_user::try_alloc(const op& step) {
  auto got = pool->try_alloc(static_cast<std::uint64_t>(step.number("bytes")));
  if (!got) return refused_step(got.error());
  return keep(step, std::move(*got), static_cast<std::uint64_t>(step.number("bytes")));
}

step_result pool_user::alloc_start(const op& step) {
  auto going = std::make_shared<flight>();
  going->bytes = static_cast<std::uint64_t>(step.number("bytes"));
  slot_of(step).started = going;
  pool->async_alloc(static_cast<std::uint64_t>(step.number("bytes")),
                    hf::pinned::alloc_options{.own_arena = step.number("own") != 0},
                    boost::asio::bind_cancellation_slot(going->signal.slot(),
                                                        [going, &w = the_world](hf::result<hf::pinned::buffer> answer) {
                                                          going->allocated.emplace(std::move(answer));
                                                          going->ended.open(w);
                                                        }));
  return {};
}

step_result pool_user::begin_get(slot& into, const hf::peer_id& peer, const hf::remote_reference& from,
                                 std::uint64_t pattern, bool stale) {
  if (!into.held) return {false, 0};
  auto going = std::make_shared<flight>();
  going->stale = stale;
  going->pattern = pattern;
  going->bytes = from.length;
  into.started = going;
  into.pattern.reset();
  pool->async_get(peer, from, std::move(into.held),
                  boost::asio::bind_cancellation_slot(
                      going->signal.slot(), [going, &w = the_world](hf::result<hf::pinned::get_answer> answer) {
                        going->fetched.emplace(std::move(answer));
                        going->ended.open(w);
                      }));
  return {};
}

step_result pool_user::await(const op& step) {
  slot& s = slot_of(step);
  const std::shared_ptr<flight> going = s.started;
  if (!going) return {false, 0};
  if (const std::int64_t ns = step.number("ns"); ns != 0 && !going->ended.wait_until(the_world, the_world.now() + ns))
    going->signal.emit(boost::asio::cancellation_type::terminal);
  going->ended.wait(the_world);
  s.started.reset();
  if (going->fetched) return accept(step, s, *going);
  if (!*going->allocated) return refused_step(going->allocated->error());
  return keep(step, std::move(**going->allocated), going->bytes);
}

// Nobody but the buffer says how long it is.
step_result pool_user::keep(const op& step, hf::pinned::buffer got, std::uint64_t asked) {
  if (got.size() != asked) {
    kernel_scope kernel;
    the_world.violate("PM-I33", machine.name() + " slot " + std::to_string(step.number("slot")) + ": a buffer of " +
                                    std::to_string(got.size()) + " bytes was granted for " + std::to_string(asked));
  }
  slot& s = slot_of(step);
  s.held = std::move(got);
  s.pattern.reset();
  return {};
}

// An ok answer has the source's bytes; the buffer goes back into its slot.
step_result pool_user::accept(const op& step, slot& into, flight& what) {
  hf::result<hf::pinned::get_answer>& answer = *what.fetched;
  if (!answer) return refused_step(answer.error());
  into.held = std::move(answer->destination);
  into.pattern.reset();
  if (!answer->outcome) return refused_step(answer->outcome.error());
  if (what.stale) {
    kernel_scope kernel;
    the_world.violate("TP-I10", machine.name() + " slot " + std::to_string(step.number("slot")) +
                                    ": a GET with a reference of an ended life of its owner reported success");
  }
  if (what.given_back) return {};
  if (const auto wrong = first_difference(into.held.bytes().first(what.bytes), what.pattern)) {
    kernel_scope kernel;
    the_world.violate("W-9", machine.name() + " slot " + std::to_string(step.number("slot")) +
                                 ": a GET reported success, but byte " + std::to_string(*wrong) +
                                 " is not the source's");
  }
  if (into.held.size() == what.bytes) into.pattern = what.pattern;
  return {};
}

step_result pool_user::cancel(const op& step) {
  const std::shared_ptr<flight> going = slot_of(step).started;
  if (!going) return {false, 0};
  going->signal.emit(boost::asio::cancellation_type::terminal);
  return {};
}

step_result pool_user::check(const op& step) {
  const slot& s = slot_of(step);
  if (!s.held || !s.pattern) return {false, 0};
  if (const auto wrong = first_difference(s.held.bytes(), *s.pattern)) {
    kernel_scope kernel;
    the_world.violate("W-3", machine.name() + " slot " + std::to_string(step.number("slot")) + ": byte " +
                                 std::to_string(*wrong) + " of a live buffer changed under its owner");
  }
  return {};
}

step_result pool_user::fill(const op& step) {
  slot& s = slot_of(step);
  if (!s.held) return {false, 0};
  s.pattern = static_cast<std::uint64_t>(step.number("seed"));
  write_pattern(s.held.bytes(), *s.pattern);
  return {};
}

step_result pool_user::free(const op& step) {
  slot& s = slot_of(step);
  if (!s.held) return {false, 0};
  s.held.reset();
  s.pattern.reset();
  return {};
}

step_result pool_user::sleep(const op& step) {
  sleep_for(the_world, step.number("ns"));
  return {};
}

}  // namespace holdfast::sim
