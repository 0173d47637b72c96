// Who runs: switching between fibers, asking the strategy, and what makes a fiber ready.
#include <sim/kernel/causal_order.hpp>
#include <sim/kernel/object_watch.hpp>
#include <sim/kernel/stack_pool.hpp>
#include <sim/kernel/world_state.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#if defined(HOLDFAST_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace holdfast::sim {

namespace detail {
constinit unsigned kernel_depth = 0;
constinit fiber* running_fiber = nullptr;
#if defined(HOLDFAST_TSAN)
void set_kernel_depth(unsigned depth) noexcept {
  kernel_depth = depth;
  race::ignore(depth != 0);
}
#endif
}  // namespace detail

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

// Switching -----------------------------------------------------------------------------------------------------------

namespace {

// The C++ runtime keeps the exceptions being handled per OS thread; a switch inside a handler must take them along.
void swap_exception_state(void* globals, void* (&out)[2], void* const (&in)[2]) noexcept {
  void* next[2];
  std::memcpy(next, in, sizeof(next));
  std::memcpy(out, globals, sizeof(out));
  std::memcpy(globals, next, sizeof(next));
}

struct jump_note {
  void** save_previous;
};

}  // namespace

void switcher::jump(world& w, fiber* from, fiber* to) {
  auto& s = *w.state_;
  void* const target = to != nullptr ? to->context : s.main_context;
  if (from != nullptr) from->saved_kernel_depth = detail::kernel_depth;
  void*(&out)[2] = from != nullptr ? from->exception_state : s.main_exception_state;
  void*(&in)[2] = to != nullptr ? to->exception_state : s.main_exception_state;
  swap_exception_state(s.exceptions_handled, out, in);
  w.running_ = to;
  detail::running_fiber = to;
  jump_note note{from != nullptr ? &from->context : &s.main_context};
#if defined(HOLDFAST_ASAN)
  void** const fake = from != nullptr ? &from->sanitizer_stack : &s.main_fake_stack;
  const bool leaving_for_good = from != nullptr && from->state == fiber_state::finished;
  __sanitizer_start_switch_fiber(leaving_for_good ? nullptr : fake, to != nullptr ? to->stack_low : s.main_stack,
                                 to != nullptr ? to->stack_bytes : s.main_stack_bytes);
#endif
  race::leave(from, to);
  const transfer_t arrived = jump_fcontext(target, &note);
  landed(w, arrived,
         from != nullptr ? from->sanitizer_stack :
#if defined(HOLDFAST_ASAN)
                         s.main_fake_stack
#else
                         nullptr
#endif
  );
  if (from != nullptr) detail::set_kernel_depth(from->saved_kernel_depth);
}

void switcher::landed([[maybe_unused]] world& w, const transfer_t& arrived, [[maybe_unused]] void* fake) noexcept {
#if defined(HOLDFAST_ASAN)
  const void* previous_stack = nullptr;
  std::size_t previous_bytes = 0;
  __sanitizer_finish_switch_fiber(fake, &previous_stack, &previous_bytes);
  if (w.state_->main_stack == nullptr) {
    w.state_->main_stack = previous_stack;
    w.state_->main_stack_bytes = previous_bytes;
  }
#endif
  *static_cast<jump_note*>(arrived.data)->save_previous = arrived.fctx;
}

[[noreturn]] void switcher::entry(transfer_t arrived) {
  world& w = *detail::the_world;
  landed(w, arrived, nullptr);
  fiber& self = *w.running_;
  if (causal_order* const order = w.state_->order) order->performed(self.index, self.pending, self.pending_object);
  detail::set_kernel_depth(0);
  race::acquire(&self.owner->heap);  // what earlier lives of the host did in it
  try {
    self.body()();
    // On the fiber itself, outside kernel scope: what the body captured may lie in the host's region.
    std::destroy_at(&self.body());
  } catch (const std::exception& e) {
    kernel_scope kernel;
    w.violate("uncaught exception", self.name + " ended with an exception: " + e.what());
  } catch (...) {
    kernel_scope kernel;
    w.violate("uncaught exception", self.name + " ended with an exception that is no std::exception");
  }
  detail::set_kernel_depth(1);
  finish(w, self);
  std::abort();  // a finished fiber is never resumed
}

void switcher::finish(world& w, fiber& self) {
  if (self.held_count != 0)
    w.violate("lock held", self.name + " ended while it held " + w.object_name(self.held[0].object));
  self.state = fiber_state::finished;
  race::release(&self);  // for whoever joins it
  kernel_access::set_ready(w, self, false);
  if (!self.forgiven) --w.state_->unfinished;
  for (fiber* joiner : self.joiners) w.wake(*joiner);
  for (;;) {
    fiber* const next = pick(w);
    jump(w, &self, next);
  }
}

// Choosing ------------------------------------------------------------------------------------------------------------

void switcher::record(world::state& s, std::uint32_t index) {
  while (index >= 0x80) {
    s.choices.push_back(static_cast<std::uint8_t>(index | 0x80));
    index >>= 7;
  }
  s.choices.push_back(static_cast<std::uint8_t>(index));
}

fiber* switcher::pick(world& w) {
  auto& s = *w.state_;
  for (;;) {
    if (w.violation_ || w.cut_) return nullptr;
    const std::uint32_t ready = s.ready.count();
    const bool time = s.events.live() != 0 && (ready == 0 || !w.calm_);
    const std::uint32_t enabled = ready + (time ? 1 : 0);
    std::uint32_t index = 0;
    if (enabled != 1) {
      if (enabled == 0) {
        if (!only_patience_is_left(w)) return nullptr;
        let_patience_end(w);
        continue;
      }
      const fiber* const current = w.running_;
      const bool goes_on = current != nullptr && current->enabled;
      s.at_choice = {enabled, ready, goes_on ? s.ready.rank_of(current->index) : choice_point::none, w.calm_,
                     s.searched};
      index = w.strategy_.choose(w, s.at_choice);
      if (w.cut_) return nullptr;
      if (index >= enabled) {
        refuse_choice(w, index);
        return nullptr;
      }
      ++w.choice_count_;
      if (w.settings_.record_choices) record(s, index);
      if (!s.listeners.empty())
        for (listener* l : s.listeners) l->on_choice(w, s.at_choice, index);
      if (w.violation_) return nullptr;
    }
    if (index < ready) return s.fibers[s.ready.at(index)].get();
    if ((w.now_ns_ > w.end_by_ns_ && s.unfinished != 0) || w.now_ns_ > w.settings_.time_ns_max) {
      report_no_end(w);
      return nullptr;
    }
    if (++w.step_count_ > w.settings_.steps_max) watch_livelock(w, nullptr);
    advance_time(w);
  }
}

// Out of the way of what every scheduling point does.
void switcher::refuse_choice(world& w, std::uint32_t index) {
  w.violate("strategy",
            "the strategy chose entry " + std::to_string(index) + " of " + std::to_string(w.state_->at_choice.enabled));
}

void switcher::report_no_end(world& w) {
  if (w.now_ns_ > w.settings_.time_ns_max)
    w.violate("no end", "virtual time passed its bound of " + std::to_string(w.settings_.time_ns_max) +
                            " ns: something re-arms itself for ever");
  else {
    bool asleep = false;
    const std::string who = w.describe_unfinished(asleep);
    w.violate("progress", "since " + std::to_string(w.expected_from_ns_) + " ns there was no more trouble, and " +
                              std::to_string(w.end_by_ns_ - w.expected_from_ns_) + " ns later have not ended: " + who);
  }
}

// What a run repeats when it makes too many steps is what it would repeat for ever.
void switcher::watch_livelock(world& w, const fiber* self) {
  constexpr std::uint64_t watched_max = 1000;
  constexpr std::uint32_t nobody = 0xffffffff;  // time
  auto& s = *w.state_;
  const world::state::repeated now{self != nullptr ? self->index : nobody,
                                   self != nullptr ? self->pending : op_kind::time,
                                   self != nullptr ? self->pending_object : 0, 1};
  world::state::repeated* known = nullptr;
  for (auto& each : s.last_steps)
    if (each.fiber == now.fiber && each.op == now.op && each.object == now.object) known = &each;
  if (known != nullptr)
    ++known->times;
  else
    s.last_steps.push_back(now);
  if (++s.steps_watched < watched_max) return;
  const world::state::repeated* most = nullptr;
  for (const auto& each : s.last_steps)
    if (each.fiber != nobody && (most == nullptr || each.times > most->times)) most = &each;
  std::string who = "only time passes";
  if (most != nullptr) {
    std::uint64_t of_fiber = 0;
    for (const auto& each : s.last_steps)
      if (each.fiber == most->fiber) of_fiber += each.times;
    const std::string object = w.object_name(most->object);
    who = "of the last " + std::to_string(s.steps_watched) + " " + s.fibers[most->fiber]->name + " made " +
          std::to_string(of_fiber) + ", and repeats " + std::string(name_of(most->op)) + (object.empty() ? "" : " ") +
          object;
  }
  w.violate("livelock", "more than " + std::to_string(w.settings_.steps_max) + " steps; " + who);
}

namespace {

// Simulated processes lie in one real one, so nothing but this tells what a variable with static storage shares: among
// them, or with an earlier world, whose numbers mean nothing here.
void see_maker(world& w, const std::vector<object_record>& objects, object_id object, const fiber& self) {
  constexpr std::uint16_t nobody = 0xffff;
  if (object >= objects.size()) return w.log(self.owner, hardware_event::object_shared, object, nobody, 0);
  const object_record& used = objects[object];
  if (used.maker == nullptr || (used.maker == self.owner && used.life == self.owner->life())) return;
  w.log(self.owner, hardware_event::object_shared, object, used.maker->index(), used.life);
}

}  // namespace

void world::point(op_kind op, object_id object) {
  if (!kernel_access::scheduling()) return;
  fiber& self = *running_;
  self.pending = op;
  self.pending_object = object;
  see_maker(*this, state_->objects, object, self);
  if (state_->watch != nullptr) state_->watch->touched(object, self.index);
  kernel_access::reschedule(*this);
}

bool world::block(op_kind op, object_id object, std::int64_t deadline_ns) {
  fiber& self = *running_;
  self.pending = op;
  self.pending_object = object;
  see_maker(*this, state_->objects, object, self);
  if (state_->watch != nullptr) state_->watch->touched(object, self.index);
  self.woken = false;
  self.state = fiber_state::blocked;
  kernel_access::set_ready(*this, self, false);
  if (deadline_ns != INT64_MAX) kernel_access::arm_deadline(*this, self, deadline_ns);
  kernel_access::reschedule(*this);
  kernel_access::disarm_deadline(*this, self);
  return self.woken;
}

void world::wake(fiber& f) {
  if (f.state != fiber_state::blocked) return;
  f.woken = true;
  f.state = fiber_state::ready;
  if (state_->order != nullptr && running_ != nullptr) state_->order->woke(running_->index, f.index);
  kernel_access::set_ready(*this, f, true);
}

host* world::running_host() const noexcept { return running_ != nullptr ? running_->owner : nullptr; }

void world::violate_and_stop(std::string_view invariant, std::string message) {
  violate(invariant, std::move(message));
  if (running_ == nullptr) {
    std::fprintf(stderr, "holdfast-sim: %s outside any fiber: %s\n", violation_->invariant.c_str(),
                 violation_->message.c_str());
    std::abort();
  }
  detail::set_kernel_depth(1);
  fiber& self = *running_;
  self.state = fiber_state::abandoned;
  for (;;) switcher::jump(*this, &self, nullptr);
}

void world::forgive(fiber& f) {
  if (f.state == fiber_state::finished || f.state == fiber_state::abandoned || f.forgiven) return;
  f.forgiven = true;
  --state_->unfinished;
}

// Kernel access -------------------------------------------------------------------------------------------------------

void kernel_access::change_enabled(world& w, fiber& f) noexcept {
  f.enabled = !f.enabled;
  w.state_->ready.flip(f.index, f.enabled);
}

void kernel_access::reschedule(world& w) {
  fiber& self = *w.running_;
  const world::state& s = *w.state_;
  const bool too_many = ++w.step_count_ > w.settings_.steps_max;
  // No choice, and the running fiber goes on: most points are such.
  const bool no_choice = s.ready.count() == 1 && self.enabled && (s.events.live() == 0 || w.calm_);
  if (!no_choice || w.violation_ || too_many) switcher::leave(w, self);
  if (s.order != nullptr) s.order->performed(self.index, self.pending, self.pending_object);
}

void switcher::leave(world& w, fiber& self) {
  kernel_scope kernel;
  if (w.step_count_ > w.settings_.steps_max) watch_livelock(w, &self);
  fiber* const next = pick(w);
  if (next == &self && self.state != fiber_state::abandoned) return;
  // Null leaves for the main loop, which never comes back to a fiber of a run that is over.
  do jump(w, &self, next);
  while (self.state == fiber_state::abandoned);
}

void kernel_access::arm_deadline(world& w, fiber& f, std::int64_t deadline_ns) {
  fiber* const sleeper = &f;
  f.deadline_event = w.at(deadline_ns, [sleeper, &w] {
    sleeper->deadline_event = 0;
    if (sleeper->state != fiber_state::blocked) return;
    sleeper->state = fiber_state::ready;
    set_ready(w, *sleeper, true);
  });
}

void kernel_access::disarm_deadline(world& w, fiber& f) noexcept {
  if (f.deadline_event == 0) return;
  w.cancel_event(f.deadline_event);
  f.deadline_event = 0;
}

fiber& kernel_access::spawn(host& h, std::string_view name, std::move_only_function<void()>&& body) {
  world& w = h.owner();
  kernel_scope kernel;
  auto& s = *w.state_;
  std::unique_ptr<fiber> made;
  if (s.spare_fibers.empty()) {
    made = std::make_unique<fiber>();
    const stack_memory stack = acquire_stack();
    made->stack_low = stack.low;
    made->stack_bytes = stack.bytes;
  } else {
    made = std::move(s.spare_fibers.back());
    s.spare_fibers.pop_back();
  }
  const auto index = static_cast<std::uint32_t>(s.fibers.size());
  s.fibers.push_back(std::move(made));
  s.ready.grow(index + 1);
  fiber& f = *s.fibers.back();
  std::uint32_t twin = 1;
  for (std::uint32_t i = 0; i < index; ++i)
    if (s.fibers[i]->owner == &h && s.fibers[i]->given_name == name) ++twin;
  f.begin(h, index, name, twin);
  race::begin(f);
  f.context = make_fcontext(f.stack_low + f.stack_bytes, f.stack_bytes, switcher::entry);
  ::new (f.body_storage) std::move_only_function<void()>(std::move(body));
  ++s.unfinished;
  w.touch();
  if (s.order != nullptr && w.running_ != nullptr) s.order->woke(w.running_->index, index);
  set_ready(w, f, true);
  return f;
}

// Fiber ---------------------------------------------------------------------------------------------------------------

fiber::~fiber() {
  if (stack_low != nullptr) release_stack({stack_low, stack_bytes});
}

void fiber::begin(host& h, std::uint32_t i, std::string_view given, std::uint32_t number_of_twin) {
  owner = &h;
  index = i;
  // Worlds of a campaign resemble each other, and so do the fibers that an object was in turn.
  const std::string& of_host = h.name();
  const bool same = twin == 1 && number_of_twin == 1 && given_name == given &&
                    name.size() == of_host.size() + 1 + given.size() && name.starts_with(of_host);
  if (!same) {
    given_name.assign(given);
    twin = number_of_twin;
    name.assign(of_host);
    name += '/';
    name += given;
    if (twin > 1) name += "-" + std::to_string(twin);
  }
  state = fiber_state::ready;
  enabled = false;
  pending = op_kind::start;
  pending_object = 0;
  next_waiter = nullptr;
  woken = false;
  deadline_event = 0;
  forgiven = false;
  held_count = 0;
  joiners.clear();
  slots.clear();
  saved_kernel_depth = 0;
  exception_state[0] = exception_state[1] = nullptr;
  sanitizer_stack = nullptr;
  unpoison_stack({stack_low, stack_bytes});
}

}  // namespace holdfast::sim
