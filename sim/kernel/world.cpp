#include <sim/kernel/causal_order.hpp>
#include <sim/kernel/object_watch.hpp>
#include <sim/kernel/stack_overflow.hpp>
#include <sim/kernel/world_state.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace holdfast::sim {

namespace detail {
constinit world* the_world = nullptr;
}  // namespace detail

std::string_view name_of(op_kind op) noexcept {
  constexpr std::string_view names[] = {
      "start",       "resume", "lock",  "try_lock",  "unlock",       "lock_shared", "unlock_shared",
      "wait",        "notify", "load",  "store",     "rmw",          "decrement",   "thread_start",
      "thread_join", "post",   "take",  "timer_arm", "timer_cancel", "poller_wait", "poller_wake",
      "driver_call", "yield",  "sleep", "time",
  };
  static_assert(std::size(names) == static_cast<std::size_t>(op_kind::time) + 1);
  return names[static_cast<std::size_t>(op)];
}

// Kept between worlds -------------------------------------------------------------------------------------------------

std::unique_ptr<world::state>& world::state::spare() {
  static auto* const kept = new std::unique_ptr<state>;  // never destroyed: worlds may end late
  return *kept;
}

std::unique_ptr<world::state> world::state::take() {
  if (auto kept = std::move(spare())) return kept;
  auto made = std::make_unique<state>();
  made->subscribers.resize(core_event_count() + hardware_event_table().size());
  return made;
}

void world::state::keep(std::unique_ptr<state> used) {
  used->recycle();
  spare() = std::move(used);
}

void world::state::recycle() {
  for (const auto& f : fibers) {
    race::retire(*f, this);
    race::end(*f);
  }
  race::acquire(this);
  // The last one on top: the next world's first fiber is likely to be what this one's was, and keeps its name.
  for (; !fibers.empty(); fibers.pop_back()) spare_fibers.push_back(std::move(fibers.back()));
  ready.clear();
  unfinished = 0;
  events.clear();
  patience.clear();
  last_steps.clear();
  steps_watched = 0;
  choices.clear();
  streams.clear();
  objects.resize(1);
  object_kinds.clear();
  object_counters.clear();
  watch = nullptr;
  order = nullptr;
  searched = true;
  for (const std::size_t kind : subscribed) subscribers[kind].clear();
  subscribed.clear();
  checks.clear();
  listeners.clear();
  probes.clear();
  handles.clear();
  suspension_hook = nullptr;
}

// A world's life ------------------------------------------------------------------------------------------------------

world::world(const world_settings& settings, strategy& s)
    : strategy_(s),
      calm_(settings.calm_from_start),
      end_by_ns_(settings.time_ns_max),
      settings_(settings),
      state_(state::take()) {
  hosts_.swap(state_->no_hosts);
  if (detail::the_world != nullptr) {
    std::fputs("holdfast-sim: two worlds at once\n", stderr);
    std::abort();
  }
  detail::the_world = this;
  catch_stack_overflows();
  XXH3_128bits_reset(&state_->hash);
}

world::~world() {
  kernel_scope kernel;
  state_->events.clear();
  state_->patience.clear();
  // What hosts keep for other rooms may refer to fibers: hosts end before these are made anew.
  for (auto& h : hosts_) h->end();
  while (!hosts_.empty()) {
    state_->spare_hosts.push_back(std::move(hosts_.back()));
    hosts_.pop_back();
  }
  hosts_.swap(state_->no_hosts);
  state::keep(std::move(state_));
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
    const std::size_t dense =
        is_hardware(kind) ? core_event_count() + (raw & static_cast<std::uint16_t>(~hardware_bit)) : raw;
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
  touch();
  const auto found = state_->streams.find(name);
  if (found != state_->streams.end()) return found->second;
  return state_->streams.emplace(std::string(name), random_stream::derive(settings_.seed, name)).first->second;
}

run_end world::run() {
  kernel_scope kernel;
  state_->exceptions_handled = abi::__cxa_get_globals();
  strategy_.begin(*this);
  for (;;) {
    fiber* const next = switcher::pick(*this);
    if (next == nullptr) break;
    switcher::jump(*this, nullptr, next);
    detail::set_kernel_depth(1);
    if (violation_ || cut_) break;
  }
  if (!violation_ && cut_) return run_end::cut;
  if (!violation_ && state_->unfinished != 0) report_stuck();
  if (!violation_) {
    for (const auto& h : hosts_)
      if (h->alive() && !h->leaks_on_purpose_ && h->heap.live_blocks() != 0)
        violate("heap leak", "host " + h->name() + " ended with " + std::to_string(h->heap.live_blocks()) +
                                 " blocks (" + std::to_string(h->heap.live_bytes()) +
                                 " bytes) still allocated: " + h->heap.describe_live(6));
    const bool handles_may_be_left =
        std::any_of(hosts_.begin(), hosts_.end(), [](const auto& h) { return h->leaks_on_purpose_; });
    for (const auto& [kind, count] : state_->handles)
      if (count != 0 && !handles_may_be_left)
        violate("handle leak", std::to_string(count) + " of " + kind + " left open at the end");
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
  const std::string who = describe_unfinished(asleep);
  violate(asleep ? "lost wakeup" : "deadlock", "nothing can run and no event is due: " + who);
}

// `asleep`: somebody waits for something other than a lock.
std::string world::describe_unfinished(bool& asleep) const {
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
  return who;
}

void world::expect_end_within(std::int64_t within_ns) {
  expected_from_ns_ = now_ns_;
  end_by_ns_ = within_ns > settings_.time_ns_max - now_ns_ ? settings_.time_ns_max : now_ns_ + within_ns;
}

void world::begin_trouble() { calm_ = false; }

void world::begin_calm() {
  if (calm_) return;
  calm_ = true;
  log(nullptr, hardware_event::calm_began);
}

// Objects and observation ---------------------------------------------------------------------------------------------

// Place of the counter of objects of this kind.
std::uint32_t world::state::counter_of(const char* kind) {
  for (const object_kind& known : object_kinds)
    if (known.address == kind) return known.counter;
  for (const object_kind& known : object_kinds)
    if (std::strcmp(known.address, kind) == 0) {
      const std::uint32_t counter = known.counter;
      object_kinds.push_back({kind, counter});
      return counter;
    }
  const auto counter = static_cast<std::uint32_t>(object_counters.size());
  object_counters.push_back(0);
  object_kinds.push_back({kind, counter});
  return counter;
}

object_id world::new_object(const char* kind) {
  const object_id made = new_shared_object(kind);
  if (running_ == nullptr) return made;
  object_record& record = state_->objects[made];
  record.maker = running_->owner;
  record.life = running_->owner->life();
  return made;
}

object_id world::new_shared_object(const char* kind) {
  kernel_scope kernel;
  auto& s = *state_;
  s.objects.push_back({kind, ++s.object_counters[s.counter_of(kind)]});
  if (s.watch != nullptr)
    s.watch->made(running_ != nullptr ? std::string_view(running_->name) : std::string_view(), kind);
  return static_cast<object_id>(s.objects.size() - 1);
}

std::string world::object_name(object_id id) const {
  const object_record& o = state_->objects[id < state_->objects.size() ? id : 0];
  if (o.number == 0) return {};
  return std::string(o.kind) + "#" + std::to_string(o.number);
}

void world::watch_objects(object_watch& watch) {
  kernel_scope kernel;
  state_->watch = &watch;
  watch.begin();
  for (std::size_t i = 1; i < state_->objects.size(); ++i) watch.made({}, state_->objects[i].kind);
}

void world::order_operations(causal_order& order) {
  state_->order = &order;
  order.begin();
}

void world::touch() {
  if (state_->order != nullptr && running_ != nullptr) state_->order->touched(running_->index);
}

void world::touch(object_id object) {
  if (state_->order != nullptr) state_->order->performed(running_->index, running_->pending, object);
}

void world::search(bool wanted) { state_->searched = wanted; }

op_kind world::pending_operation() const noexcept { return running_ != nullptr ? running_->pending : op_kind::yield; }
object_id world::pending_object() const noexcept { return running_ != nullptr ? running_->pending_object : 0; }

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
  const std::uint64_t canonical[] = {
      static_cast<std::uint64_t>(e.time_ns),
      (std::uint64_t{static_cast<std::uint16_t>(e.kind)} << 48) | (std::uint64_t{e.host} << 32) | e.fiber,
      e.fields[0],
      e.fields[1],
      e.fields[2],
      e.fields[3],
      e.fields[4],
      e.fields[5]};
  XXH3_128bits_update(&state_->hash, canonical, sizeof(canonical));
  if (state_->order != nullptr) state_->order->told(XXH3_64bits(canonical, sizeof(canonical)));
  if (h != nullptr && e.kind == holdfast::event_id::teardown_hung) h->leaks_on_purpose_ = true;
  const auto raw = static_cast<std::uint16_t>(e.kind);
  const std::size_t dense =
      is_hardware(e.kind) ? core_event_count() + (raw & static_cast<std::uint16_t>(~hardware_bit)) : raw;
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

const fiber& world::fiber_at(std::uint32_t index) const noexcept { return *state_->fibers[state_->ready.at(index)]; }

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

}  // namespace holdfast::sim
