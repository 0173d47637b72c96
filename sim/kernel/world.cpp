#include <sim/kernel/world.hpp>

#include <sim/kernel/fiber.hpp>
#include <sim/kernel/stack_pool.hpp>

#include <boost/context/detail/fcontext.hpp>

#define XXH_STATIC_LINKING_ONLY  // for the size of XXH3_state_t; the functions come from the library
#include <xxhash.h>

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <queue>

#if defined(HOLDFAST_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace holdfast::sim {

namespace detail {
constinit unsigned kernel_depth = 0;
constinit world* the_world = nullptr;
constinit fiber* running_fiber = nullptr;
}  // namespace detail

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

std::string_view name_of(op_kind op) noexcept {
  constexpr std::string_view names[] = {
      "start",        "resume",      "lock",       "try_lock",   "unlock",      "lock_shared", "unlock_shared",
      "wait",         "notify",      "load",       "store",      "rmw",         "decrement",   "thread_start",
      "thread_join",  "post",        "take",       "timer_arm",  "timer_cancel", "poller_wait", "poller_wake",
      "driver_call",  "yield",       "sleep",      "time",
  };
  static_assert(std::size(names) == static_cast<std::size_t>(op_kind::time) + 1);
  return names[static_cast<std::size_t>(op)];
}

namespace {

struct queued_event {
  std::int64_t time_ns;
  std::uint64_t sequence;
  std::uint32_t slot;
};
struct later {
  bool operator()(const queued_event& a, const queued_event& b) const noexcept {
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
  }
};
struct event_slot {
  std::uint64_t sequence = 0;  // 0 = free
  std::move_only_function<void()> body;
};

struct quiet_probe {
  host* where;
  std::uint16_t rank;
  std::function<void()> probe;
};

struct object_record {
  const char* kind;
  std::uint32_t number;  // among its kind
};

}  // namespace

// Kept between worlds: a campaign makes tens of thousands of small worlds a second, and most of a small world's cost
// would be giving memory back and asking for it again.
struct world::state {
  std::vector<std::unique_ptr<fiber>> fibers;
  std::vector<std::unique_ptr<fiber>> spare_fibers;  // with their stacks
  std::vector<std::unique_ptr<host>> spare_hosts;
  std::vector<std::unique_ptr<host>> no_hosts;  // empty: capacity for the next world's
  std::vector<std::uint64_t> ready_bits;
  std::uint32_t ready_count = 0;
  std::uint32_t unfinished = 0;
  void* main_context = nullptr;
  bool running_loop = false;

  std::vector<queued_event> queue;  // heap
  std::vector<event_slot> slots;
  std::vector<std::uint32_t> free_slots;
  std::uint64_t next_sequence = 1;
  std::uint64_t live_events = 0;

  std::vector<std::uint8_t> choices;
  std::map<std::string, random_stream, std::less<>> streams;
  std::vector<object_record> objects{{"", 0}};
  std::vector<object_record> object_kinds;  // the last number of each kind

  std::vector<std::vector<check*>> subscribers;  // by dense kind
  std::vector<std::size_t> subscribed;           // kinds with subscribers
  std::vector<check*> checks;
  std::vector<listener*> listeners;
  std::vector<quiet_probe> probes;
  std::map<std::string, std::int64_t, std::less<>> handles;
  std::function<void(const char*, unsigned, void*)> suspension_hook;

  XXH3_state_t hash;

  // The enabled set at the choice being made, for labels.
  choice_point at_choice{};

#if defined(HOLDFAST_ASAN)
  const void* main_stack = nullptr;
  std::size_t main_stack_bytes = 0;
  void* main_fake_stack = nullptr;
#endif
  void* main_exception_state[2] = {nullptr, nullptr};

  static std::unique_ptr<state>& spare() {
    static auto* const kept = new std::unique_ptr<state>;  // never destroyed: worlds may end late
    return *kept;
  }
  static std::unique_ptr<state> take() {
    if (auto kept = std::move(spare())) return kept;
    auto made = std::make_unique<state>();
    made->subscribers.resize(core_event_count() + hardware_event_table().size());
    return made;
  }
  // As new, but for capacities.
  void recycle() {
    for (auto& f : fibers) spare_fibers.push_back(std::move(f));
    fibers.clear();
    ready_bits.clear();
    ready_count = 0;
    unfinished = 0;
    queue.clear();
    slots.clear();
    free_slots.clear();
    next_sequence = 1;
    live_events = 0;
    choices.clear();
    streams.clear();
    objects.resize(1);
    object_kinds.clear();
    for (const std::size_t kind : subscribed) subscribers[kind].clear();
    subscribed.clear();
    checks.clear();
    listeners.clear();
    probes.clear();
    handles.clear();
    suspension_hook = nullptr;
  }
};

// Switching ------------------------------------------------------------------------------------------------------

namespace {

// The C++ runtime keeps the exceptions being handled per OS thread; a switch inside a handler must take them along.
void swap_exception_state(void* (&out)[2], const void* const (&in)[2]) noexcept {
  auto* const globals = reinterpret_cast<unsigned char*>(abi::__cxa_get_globals());
  std::memcpy(out, globals, sizeof(out));
  std::memcpy(globals, in, sizeof(out));
}

struct jump_note {
  void** save_previous;
};

}  // namespace

struct switcher {
  // Leaves the running context (fiber or main) for `to` (null = main). Returns when somebody comes back.
  static void jump(world& w, fiber* from, fiber* to) {
    auto& s = *w.state_;
    void* const target = to != nullptr ? to->context : s.main_context;
    if (from != nullptr) from->saved_kernel_depth = detail::kernel_depth;
    void*(&out)[2] = from != nullptr ? from->exception_state : s.main_exception_state;
    void*(&in)[2] = to != nullptr ? to->exception_state : s.main_exception_state;
    const void* in_copy[2] = {in[0], in[1]};
    swap_exception_state(out, in_copy);
    w.running_ = to;
    detail::running_fiber = to;
    jump_note note{from != nullptr ? &from->context : &s.main_context};
#if defined(HOLDFAST_ASAN)
    void** const fake = from != nullptr ? &from->sanitizer_stack : &s.main_fake_stack;
    const bool leaving_for_good = from != nullptr && from->state == fiber_state::finished;
    __sanitizer_start_switch_fiber(leaving_for_good ? nullptr : fake, to != nullptr ? to->stack_low : s.main_stack,
                                   to != nullptr ? to->stack_bytes : s.main_stack_bytes);
#endif
    const transfer_t arrived = jump_fcontext(target, &note);
    landed(w, arrived, from != nullptr ? from->sanitizer_stack :
#if defined(HOLDFAST_ASAN)
                                       s.main_fake_stack
#else
                                       nullptr
#endif
    );
    if (from != nullptr) detail::kernel_depth = from->saved_kernel_depth;
  }

  static void landed([[maybe_unused]] world& w, const transfer_t& arrived, [[maybe_unused]] void* fake) noexcept {
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

  [[noreturn]] static void entry(transfer_t arrived) {
    world& w = *detail::the_world;
    landed(w, arrived, nullptr);
    fiber& self = *w.running_;
    detail::kernel_depth = 0;
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
    detail::kernel_depth = 1;
    finish(w, self);
    std::abort();  // a finished fiber is never resumed
  }

  static void finish(world& w, fiber& self) {
    if (self.held_count != 0)
      w.violate("lock held", self.name + " ended while it held " + w.object_name(self.held[0].object));
    self.state = fiber_state::finished;
    kernel_access::set_ready(w, self, false);
    if (!self.forgiven) --w.state_->unfinished;
    for (fiber* joiner : self.joiners) w.wake(*joiner);
    for (;;) {
      fiber* const next = pick(w);
      jump(w, &self, next);
    }
  }

  static void advance_time(world& w) {
    auto& s = *w.state_;
    while (true) {
      std::pop_heap(s.queue.begin(), s.queue.end(), later{});
      const queued_event due = s.queue.back();
      s.queue.pop_back();
      event_slot& slot = s.slots[due.slot];
      if (slot.sequence != due.sequence) {  // cancelled
        if (s.queue.empty()) return;
        continue;
      }
      if (due.time_ns > w.now_ns_) {
        if (s.ready_count != 0)
          for (auto& f : s.fibers)
            if (is_ready(s, f->index)) f->owner->marked_ = true;
        for (auto& h : w.hosts_)
          if (h->marked_) {
            h->stalled_ns_ += due.time_ns - w.now_ns_;
            h->marked_ = false;
          }
        w.now_ns_ = due.time_ns;
      }
      auto body = std::move(slot.body);
      slot.body = nullptr;
      slot.sequence = 0;
      s.free_slots.push_back(due.slot);
      --s.live_events;
      body();
      return;
    }
  }

  // The next fiber to run, or null: the run is over, or stopped.
  static fiber* pick(world& w) {
    auto& s = *w.state_;
    for (;;) {
      if (w.violation_) return nullptr;
      const std::uint32_t ready = s.ready_count;
      const bool time = s.live_events != 0 && (ready == 0 || !w.calm_);
      const std::uint32_t enabled = ready + (time ? 1 : 0);
      if (enabled == 0) return nullptr;
      std::uint32_t index = 0;
      if (enabled > 1) {
        fiber* const current = w.running_;
        const bool current_ready = current != nullptr && is_ready(s, current->index);
        s.at_choice = {enabled, ready, current_ready ? rank_of(s, current->index) : choice_point::none, w.calm_};
        index = w.strategy_.choose(w, s.at_choice);
        if (index >= enabled) {
          w.violate("strategy", "the strategy chose entry " + std::to_string(index) + " of " + std::to_string(enabled));
          return nullptr;
        }
        ++w.choice_count_;
        if (w.settings_.record_choices) record(s, index);
        for (listener* l : s.listeners) l->on_choice(w, s.at_choice, index);
        if (w.violation_) return nullptr;
      }
      if (index < ready) return s.fibers[select(s, index)].get();
      if (w.now_ns_ > w.settings_.time_ns_max) {
        w.violate("no end", "virtual time passed its bound of " + std::to_string(w.settings_.time_ns_max) +
                                " ns: something re-arms itself for ever");
        return nullptr;
      }
      if (++w.step_count_ > w.settings_.steps_max) {
        w.violate("livelock", "more than " + std::to_string(w.settings_.steps_max) + " steps");
        return nullptr;
      }
      advance_time(w);
    }
  }

  static void record(world::state& s, std::uint32_t index) {
    while (index >= 0x80) {
      s.choices.push_back(static_cast<std::uint8_t>(index | 0x80));
      index >>= 7;
    }
    s.choices.push_back(static_cast<std::uint8_t>(index));
  }
  static bool is_ready(const world::state& s, std::uint32_t index) noexcept {
    return ((s.ready_bits[index / 64] >> (index % 64)) & 1) != 0;
  }
  // Inline, because the baseline x86-64 has no instruction for it and a call costs more than the choice.
  static constexpr std::uint32_t count_bits(std::uint64_t bits) noexcept {
    bits -= (bits >> 1) & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + ((bits >> 2) & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<std::uint32_t>((bits * 0x0101010101010101u) >> 56);
  }
  // Position of fiber `index` among the ready ones.
  static std::uint32_t rank_of(const world::state& s, std::uint32_t index) noexcept {
    std::uint32_t rank = 0;
    for (std::uint32_t word = 0; word < index / 64; ++word)
      rank += count_bits(s.ready_bits[word]);
    return rank + count_bits(s.ready_bits[index / 64] & ((std::uint64_t{1} << (index % 64)) - 1));
  }
  // Fiber index of the ready fiber at position `rank`.
  static std::uint32_t select(const world::state& s, std::uint32_t rank) noexcept {
    std::uint32_t word = 0;
    for (;; ++word) {
      const std::uint32_t here = count_bits(s.ready_bits[word]);
      if (rank < here) break;
      rank -= here;
    }
    std::uint64_t bits = s.ready_bits[word];
    for (; rank != 0; --rank) bits &= bits - 1;
    return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
};

// World ------------------------------------------------------------------------------------------------------------

world::world(const world_settings& settings, strategy& s)
    : strategy_(s), calm_(settings.calm_from_start), settings_(settings), state_(state::take()) {
  hosts_.swap(state_->no_hosts);
  if (detail::the_world != nullptr) {
    std::fputs("holdfast-sim: two worlds at once\n", stderr);
    std::abort();
  }
  detail::the_world = this;
  XXH3_128bits_reset(&state_->hash);
}

world::~world() {
  kernel_scope kernel;
  state_->slots.clear();
  // What hosts keep for other rooms may refer to fibers: hosts end before these are made anew.
  for (auto& h : hosts_) h->end();
  while (!hosts_.empty()) {
    state_->spare_hosts.push_back(std::move(hosts_.back()));
    hosts_.pop_back();
  }
  hosts_.swap(state_->no_hosts);
  state_->recycle();
  state::spare() = std::move(state_);
  detail::the_world = nullptr;
  detail::running_fiber = nullptr;
}

host& world::add_host(std::string_view name) {
  kernel_scope kernel;
  auto& spare = state_->spare_hosts;
  std::unique_ptr<host> made;
  if (spare.empty()) {
    made = std::make_unique<host>();
  } else {
    made = std::move(spare.back());
    spare.pop_back();
  }
  made->begin(*this, static_cast<std::uint16_t>(hosts_.size()), name);
  hosts_.push_back(std::move(made));
  return *hosts_.back();
}

host* world::find_host(std::string_view name) noexcept {
  for (auto& h : hosts_)
    if (h->name() == name) return h.get();
  return nullptr;
}

void world::attach(check& c) {
  kernel_scope kernel;
  c.begin(*this);
  state_->checks.push_back(&c);
  for (const event_kind kind : c.wants()) {
    const auto raw = static_cast<std::uint16_t>(kind);
    const std::size_t dense = is_hardware(kind) ? core_event_count() + (raw & static_cast<std::uint16_t>(~hardware_bit)) : raw;
    state_->subscribers[dense].push_back(&c);
    state_->subscribed.push_back(dense);
  }
}

void world::attach(listener& l) {
  kernel_scope kernel;
  state_->listeners.push_back(&l);
}

random_stream& world::stream(std::string_view name) {
  kernel_scope kernel;
  const auto found = state_->streams.find(name);
  if (found != state_->streams.end()) return found->second;
  return state_->streams.emplace(std::string(name), random_stream::derive(settings_.seed, name)).first->second;
}

run_end world::run() {
  kernel_scope kernel;
  strategy_.begin(*this);
  for (;;) {
    fiber* const next = switcher::pick(*this);
    if (next == nullptr) break;
    switcher::jump(*this, nullptr, next);
    detail::kernel_depth = 1;
    if (violation_) break;
  }
  if (!violation_ && state_->unfinished != 0) report_stuck();
  if (!violation_) {
    for (const auto& h : hosts_)
      if (h->alive() && !h->leaks_on_purpose_ && h->heap.live_blocks() != 0)
        violate("heap leak", "host " + h->name() + " ended with " + std::to_string(h->heap.live_blocks()) + " blocks (" +
                                 std::to_string(h->heap.live_bytes()) + " bytes) still allocated: " +
                                 h->heap.describe_live(6));
    const bool handles_may_be_left =
        std::any_of(hosts_.begin(), hosts_.end(), [](const auto& h) { return h->leaks_on_purpose_; });
    for (const auto& [kind, count] : state_->handles)
      if (count != 0 && !handles_may_be_left) violate("handle leak", std::to_string(count) + " of " + kind + " left open at the end");
  }
  if (!violation_)
    for (check* c : state_->checks) {
      c->at_rest(*this);
      if (violation_) break;
    }
  return violation_ ? run_end::violated : run_end::clean;
}

// Nothing can run, no event is due, and somebody has not finished.
void world::report_stuck() {
  for (check* c : state_->checks) {
    c->at_stuck(*this);
    if (violation_) return;
  }
  bool asleep = false;
  std::string who;
  unsigned named = 0;
  for (const auto& f : state_->fibers) {
    if (f->state != fiber_state::blocked && f->state != fiber_state::ready) continue;
    const bool on_lock = f->pending == op_kind::lock || f->pending == op_kind::lock_shared;
    if (!on_lock) asleep = true;
    if (named++ == 12) {
      who += "; and more";
      continue;
    }
    if (named > 12) continue;
    if (!who.empty()) who += "; ";
    who += f->name + " waits in " + std::string(name_of(f->pending)) + " " + object_name(f->pending_object);
    for (unsigned i = 0; i < f->held_count; ++i) who += (i == 0 ? " holding " : ", ") + object_name(f->held[i].object);
  }
  violate(asleep ? "lost wakeup" : "deadlock", "nothing can run and no event is due: " + who);
}

std::uint64_t world::at(std::int64_t time_ns, std::move_only_function<void()> body) {
  kernel_scope kernel;
  auto& s = *state_;
  std::uint32_t slot;
  if (!s.free_slots.empty()) {
    slot = s.free_slots.back();
    s.free_slots.pop_back();
  } else {
    slot = static_cast<std::uint32_t>(s.slots.size());
    s.slots.emplace_back();
  }
  const std::uint64_t sequence = s.next_sequence++;
  s.slots[slot].sequence = sequence;
  s.slots[slot].body = std::move(body);
  s.queue.push_back({std::max(time_ns, now_ns_), sequence, slot});
  std::push_heap(s.queue.begin(), s.queue.end(), later{});
  ++s.live_events;
  return (sequence << 24) | slot;
}

bool world::cancel_event(std::uint64_t event) {
  kernel_scope kernel;
  auto& s = *state_;
  const auto slot = static_cast<std::uint32_t>(event & 0xffffff);
  const std::uint64_t sequence = event >> 24;
  if (event == 0 || slot >= s.slots.size() || s.slots[slot].sequence != sequence) return false;
  s.slots[slot].sequence = 0;
  s.slots[slot].body = nullptr;
  s.free_slots.push_back(slot);
  --s.live_events;
  return true;
}

void world::begin_trouble() { calm_ = false; }

void world::begin_calm() {
  if (calm_) return;
  calm_ = true;
  log(nullptr, hardware_event::calm_began);
}

void world::point(op_kind op, object_id object) {
  if (!kernel_access::scheduling()) return;
  fiber& self = *running_;
  self.pending = op;
  self.pending_object = object;
  kernel_access::reschedule(*this);
}

bool world::block(op_kind op, object_id object, std::int64_t deadline_ns) {
  fiber& self = *running_;
  self.pending = op;
  self.pending_object = object;
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
  kernel_access::set_ready(*this, f, true);
}

host* world::running_host() const noexcept { return running_ != nullptr ? running_->owner : nullptr; }

object_id world::new_object(const char* kind) {
  kernel_scope kernel;
  auto& s = *state_;
  auto of_kind = std::find_if(s.object_kinds.begin(), s.object_kinds.end(), [kind](const object_record& o) {
    return o.kind == kind || std::strcmp(o.kind, kind) == 0;
  });
  if (of_kind == s.object_kinds.end()) of_kind = s.object_kinds.insert(of_kind, {kind, 0});
  s.objects.push_back({kind, ++of_kind->number});
  return static_cast<object_id>(s.objects.size() - 1);
}

std::string world::object_name(object_id id) const {
  const object_record& o = state_->objects[id < state_->objects.size() ? id : 0];
  if (o.number == 0) return {};
  return std::string(o.kind) + "#" + std::to_string(o.number);
}

unsigned world::locks_held_by_running_fiber() const noexcept { return running_ != nullptr ? running_->held_count : 0; }

void world::on_suspension(std::function<void(const char*, unsigned, void*)> hook) {
  kernel_scope kernel;
  state_->suspension_hook = std::move(hook);
}

void world::suspension(const char* operation, unsigned index, void* task) {
  kernel_scope kernel;
  if (state_->suspension_hook) state_->suspension_hook(operation, index, task);
}

void world::log(const holdfast::event_record& record) {
  kernel_scope kernel;
  logged_event e;
  e.kind = kind_of(record.id);
  e.field_count = record.field_count;
  std::memcpy(e.fields, record.fields, sizeof(e.fields));
  log_event(running_host(), e);
}

void world::log_event(host* h, logged_event& e) {
  kernel_scope kernel;
  e.number = ++event_count_;
  e.time_ns = now_ns_;
  e.host = h != nullptr ? h->index() : 0xffff;
  e.fiber = running_ != nullptr ? running_->index : 0xffffffff;
  const std::uint64_t canonical[] = {static_cast<std::uint64_t>(e.time_ns),
                                     (std::uint64_t{static_cast<std::uint16_t>(e.kind)} << 48) |
                                         (std::uint64_t{e.host} << 32) | e.fiber,
                                     e.fields[0], e.fields[1], e.fields[2], e.fields[3], e.fields[4], e.fields[5]};
  XXH3_128bits_update(&state_->hash, canonical, sizeof(canonical));
  if (h != nullptr && e.kind == holdfast::event_id::teardown_hung) h->leaks_on_purpose_ = true;
  const auto raw = static_cast<std::uint16_t>(e.kind);
  const std::size_t dense = is_hardware(e.kind) ? core_event_count() + (raw & static_cast<std::uint16_t>(~hardware_bit)) : raw;
  for (check* c : state_->subscribers[dense]) c->on_event(*this, e);
  for (listener* l : state_->listeners) l->on_event(*this, e);
}

std::string world::fingerprint() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(&state_->hash);
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(digest.high64),
                static_cast<unsigned long long>(digest.low64));
  return text;
}

const std::vector<std::uint8_t>& world::choices() const noexcept { return state_->choices; }

const fiber& world::fiber_at(std::uint32_t index) const noexcept {
  return *state_->fibers[switcher::select(*state_, index)];
}

std::string world::label(std::uint32_t index) const {
  const auto& s = *state_;
  if (index >= s.at_choice.fibers) return "time";
  const fiber& f = fiber_at(index);
  std::string out = f.name;
  out += ' ';
  out += name_of(f.pending);
  const std::string object = object_name(f.pending_object);
  if (!object.empty()) out += ' ' + object;
  return out;
}

std::uint32_t world::enabled_check() const {
  std::uint32_t hash = 0;
  for (std::uint32_t i = 0; i < state_->at_choice.enabled; ++i) {
    const std::string text = label(i);
    hash = XXH32(text.data(), text.size(), hash);
  }
  return hash;
}

void world::violate(std::string_view invariant, std::string message) {
  kernel_scope kernel;
  if (violation_) return;
  // Copied, not moved: the text may lie in a region that goes with the run.
  violation_.emplace(std::string(invariant), std::string(message.data(), message.size()), event_count_, choice_count_);
}

void world::violate_and_stop(std::string_view invariant, std::string message) {
  violate(invariant, std::move(message));
  if (running_ == nullptr) {
    std::fprintf(stderr, "holdfast-sim: %s outside any fiber: %s\n", violation_->invariant.c_str(),
                 violation_->message.c_str());
    std::abort();
  }
  detail::kernel_depth = 1;
  fiber& self = *running_;
  self.state = fiber_state::abandoned;
  for (;;) switcher::jump(*this, &self, nullptr);
}

void world::forgive(fiber& f) {
  if (f.state == fiber_state::finished || f.state == fiber_state::abandoned || f.forgiven) return;
  f.forgiven = true;
  --state_->unfinished;
}

void world::count_handle(std::string_view kind, int change) {
  kernel_scope kernel;
  const auto found = state_->handles.find(kind);
  if (found != state_->handles.end())
    found->second += change;
  else
    state_->handles.emplace(std::string(kind), change);
}

void world::at_quiet_point(host& h, std::uint16_t rank, std::function<void()> probe) {
  kernel_scope kernel;
  state_->probes.push_back({&h, rank, std::move(probe)});
}

// Kernel access ------------------------------------------------------------------------------------------------------

void kernel_access::set_ready(world& w, fiber& f, bool ready) noexcept {
  auto& s = *w.state_;
  const bool bit = ready && !f.owner->paused_ && f.state != fiber_state::abandoned && f.state != fiber_state::finished;
  const std::uint64_t mask = std::uint64_t{1} << (f.index % 64);
  std::uint64_t& word = s.ready_bits[f.index / 64];
  if (((word & mask) != 0) == bit) return;
  word ^= mask;
  if (bit)
    ++s.ready_count;
  else
    --s.ready_count;
}

void kernel_access::reschedule(world& w) {
  fiber& self = *w.running_;
  kernel_scope kernel;
  if (++w.step_count_ > w.settings_.steps_max)
    w.violate("livelock", "more than " + std::to_string(w.settings_.steps_max) + " steps; " + self.name + " is in " +
                              std::string(name_of(self.pending)) + " " + w.object_name(self.pending_object));
  fiber* const next = switcher::pick(w);
  if (next == &self && self.state != fiber_state::abandoned) return;
  // Null leaves for the main loop, which never comes back to a fiber of a run that is over.
  do switcher::jump(w, &self, next);
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

void kernel_access::check_rank_against_held(world& w, std::uint16_t rank, bool leaf, const char* name) {
  const fiber& self = *w.running_;
  for (unsigned i = 0; i < self.held_count; ++i) {
    const held_lock& held = self.held[i];
    const bool wrong = rank <= held.rank || held.rank >= 800 || (held.leaf && rank < 800);
    if (!wrong) continue;
    kernel_scope kernel;
    w.violate("lock rank", self.name + " takes " + name + " (rank " + std::to_string(rank) + (leaf ? ", a leaf" : "") +
                               ") while it holds " + w.object_name(held.object) + " (rank " +
                               std::to_string(held.rank) + (held.leaf ? ", a leaf)" : ")"));
    return;
  }
}

void kernel_access::push_lock(world& w, std::uint16_t rank, bool leaf, object_id object) {
  fiber& self = *w.running_;
  if (self.held_count == fiber::held_max) {
    kernel_scope kernel;
    w.violate("lock rank", self.name + " holds " + std::to_string(fiber::held_max) + " locks");
    return;
  }
  self.held[self.held_count++] = {rank, leaf, object};
}

void kernel_access::pop_lock(world& w, object_id object) {
  fiber& self = *w.running_;
  for (unsigned i = self.held_count; i != 0; --i)
    if (self.held[i - 1].object == object) {
      for (unsigned k = i - 1; k + 1 < self.held_count; ++k) self.held[k] = self.held[k + 1];
      --self.held_count;
      return;
    }
  kernel_scope kernel;
  w.violate("lock misuse", self.name + " releases " + w.object_name(object) + ", which it does not hold");
}

bool kernel_access::has_quiet_points(world& w) noexcept { return !w.state_->probes.empty(); }

void kernel_access::run_quiet_points(world& w, host& h, std::uint16_t rank) {
  kernel_scope kernel;
  for (auto& p : w.state_->probes)
    if (p.where == &h && p.rank == rank) p.probe();
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
  if (s.ready_bits.size() * 64 <= index) s.ready_bits.push_back(0);
  fiber& f = *s.fibers.back();
  std::uint32_t twin = 1;
  for (std::uint32_t i = 0; i < index; ++i)
    if (s.fibers[i]->owner == &h && s.fibers[i]->given_name == name) ++twin;
  f.begin(h, index, name, twin);
  f.context = make_fcontext(f.stack_low + f.stack_bytes, f.stack_bytes, switcher::entry);
  ::new (f.body_storage) std::move_only_function<void()>(std::move(body));
  ++s.unfinished;
  set_ready(w, f, true);
  return f;
}

fiber::~fiber() {
  if (stack_low != nullptr) release_stack({stack_low, stack_bytes});
}

void fiber::begin(host& h, std::uint32_t i, std::string_view given, std::uint32_t number_of_twin) {
  owner = &h;
  index = i;
  given_name.assign(given);
  twin = number_of_twin;
  name.assign(h.name());
  name += '/';
  name += given;
  if (twin > 1) name += "-" + std::to_string(twin);
  state = fiber_state::ready;
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

// Host ---------------------------------------------------------------------------------------------------------------

void host::begin(world& w, std::uint16_t index, std::string_view name) {
  world_ = &w;
  index_ = index;
  name_.assign(name);
}

// In the order in which a destructor would: what others keep here first, the heap that it may have used last.
void host::end() {
  states_.clear();
  sleepers_.clear();
  descriptors_.clear();
  crash_hooks_.clear();
  heap.reset();
  alive_ = true;
  paused_ = false;
  life_ = 1;
  leaks_on_purpose_ = false;
  marked_ = false;
  stalled_ns_ = 0;
  next_descriptor_ = 1000;
}

fiber& host::spawn(std::string_view name, std::move_only_function<void()> body) {
  return kernel_access::spawn(*this, name, std::move(body));
}

void host::crash() {
  kernel_scope kernel;
  if (!alive_) return;
  alive_ = false;
  ++life_;
  world_->log(this, hardware_event::host_crashed);
  for (auto& hook : crash_hooks_) hook();
  crash_hooks_.clear();
  for (auto& f : world_->state_->fibers) {
    if (f->owner != this || f->state == fiber_state::finished || f->state == fiber_state::abandoned) continue;
    kernel_access::disarm_deadline(*world_, *f);
    f->state = fiber_state::abandoned;
    kernel_access::set_ready(*world_, *f, false);
    if (!f->forgiven) --world_->state_->unfinished;
  }
  descriptors_.clear();
  sleepers_.clear();
  states_.clear();
  heap.reset();
}

void host::restart() {
  kernel_scope kernel;
  alive_ = true;
  paused_ = false;
  leaks_on_purpose_ = false;
}

void host::pause() {
  kernel_scope kernel;
  if (paused_) return;
  paused_ = true;
  world_->log(this, hardware_event::host_paused);
  for (auto& f : world_->state_->fibers)
    if (f->owner == this) kernel_access::set_ready(*world_, *f, false);
}

void host::resume() {
  kernel_scope kernel;
  if (!paused_) return;
  paused_ = false;
  world_->log(this, hardware_event::host_resumed);
  for (auto& f : world_->state_->fibers)
    if (f->owner == this && f->wants_to_run()) kernel_access::set_ready(*world_, *f, true);
}

int host::open_descriptor(descriptor& d) {
  kernel_scope kernel;
  descriptors_[next_descriptor_] = &d;
  return next_descriptor_++;
}

void host::close_descriptor(int number) {
  kernel_scope kernel;
  descriptors_.erase(number);
}

descriptor* host::find_descriptor(int number) const noexcept {
  const auto found = descriptors_.find(number);
  return found == descriptors_.end() ? nullptr : found->second;
}

void host::descriptor_changed(int number) {
  kernel_scope kernel;
  descriptor* const d = find_descriptor(number);
  if (d == nullptr || !d->readable()) return;
  for (const auto& [sleeping, watched] : sleepers_)
    if (watched == number) world_->wake(*sleeping);
}

void host::watch(fiber& f, int number) { sleepers_.emplace_back(&f, number); }
void host::unwatch(fiber& f) noexcept {
  std::erase_if(sleepers_, [&f](const auto& entry) { return entry.first == &f; });
}

}  // namespace holdfast::sim
