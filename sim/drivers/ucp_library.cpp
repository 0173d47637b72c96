// What all functions of the double share: objects and their lives, entering and leaving, reports of misuse.
#include <sim/drivers/ucp_double.hpp>

#include <sim/faults/fault_plan.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace holdfast::sim {

namespace ucp_double {

namespace {

constexpr auto function_names = std::to_array<const char*>({
#define HOLDFAST_UCP(name) #name,
    HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP) HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
});

// A freed request is found out while it waits here to be used again.
constexpr std::size_t freed_requests_kept = 64;

/// One object for each function, so that a choice reads "b/ucx-progress driver_call ucp_get_nbx".
struct function_objects {
  object_id ids[function_names.size()] = {};
};

}  // namespace

std::string_view name_of(function f) noexcept { return function_names[static_cast<std::size_t>(f)]; }

std::string_view name_of(object_kind kind) noexcept {
  switch (kind) {
    case object_kind::config: return "ucp config";
    case object_kind::context: return "ucp context";
    case object_kind::worker: return "ucp worker";
    case object_kind::listener: return "ucp listener";
    case object_kind::connection_request: return "ucp connection request";
    case object_kind::endpoint: return "ucp endpoint";
    case object_kind::key: return "ucp key";
    case object_kind::memory_handle: return "ucp memory handle";
    case object_kind::packed_key: return "ucp packed key";
    case object_kind::request: return "ucp request";
    case object_kind::address: return "ucp address";
  }
  return "?";
}

library& library_of(host& h) {
  static const char key = 0;
  kernel_scope scope;
  return h.state<library>(&key, [&h] { return std::make_shared<library>(h); });
}

// library -----------------------------------------------------------------------------------------------------

library::library(host& h)
    : owner(h),
      life(h.life()),
      settings(ucp_settings_of(h)),
      chance_(h.owner().stream("ucp@" + h.name())),
      key_chance_(h.owner().stream("ucp keys@" + h.name())),
      faults_(fault_plan::of(h.owner())) {
  h.on_crash([this] { forgive_leaks(); });
  if (settings.rdma) nic_of(h).on_failure(alive, [this] { flush_failed_device(*this); });
}

request& library::make_request(request_kind what, worker& through) {
  request* r = nullptr;
  if (free_requests_.size() > freed_requests_kept) {
    r = free_requests_.front();
    free_requests_.pop_front();
    std::destroy_at(r);
    std::construct_at(r, *this, what);
    r->number = ++numbers_[static_cast<unsigned>(object_kind::request)];
    count(object_kind::request, 1);
  } else {
    r = &make<request>(what);
  }
  r->through = &through;
  return *r;
}

void library::retire(object& o) {
  o.gone = true;
  if (o.counted) count(o.kind, -1);
  if (o.kind == object_kind::request) free_requests_.push_back(static_cast<request*>(&o));
}

void library::count(object_kind kind, int change) {
  open_[static_cast<unsigned>(kind)] += change;
  if (!forgiven_) the_world().count_handle(name_of(kind), change);
}

void library::forgive_leaks() {
  if (forgiven_) return;
  for (unsigned kind = 0; kind < std::size(open_); ++kind) {
    if (open_[kind] != 0) the_world().count_handle(name_of(static_cast<object_kind>(kind)), -open_[kind]);
  }
  forgiven_ = true;
}

packed_key* library::find_packed(const void* bytes) {
  const auto found = std::ranges::find_if(packed, [bytes](const packed_key* p) { return p->bytes.data() == bytes; });
  return found == packed.end() ? nullptr : *found;
}

std::uint32_t library::take_key_number() {
  // A queue pair finds the registration by the number.
  if (!settings.rdma && !std::exchange(keys_drawn_, true))
    keys_empty_ = key_chance().chance(settings.key_empty_permille);
  if (keys_empty_) return 0;
  if (!key_chance().chance(settings.key_reuse_permille)) return ++highest_key_;
  for (std::uint32_t number = 1;; ++number) {
    if (registration_named(number) != 0) continue;
    highest_key_ = std::max(highest_key_, number);
    return number;
  }
}

std::uint64_t library::registration_named(std::uint32_t key_number) const noexcept {
  if (key_number == 0) return 0;
  for (const memory_handle* const m : mapped) {
    if (m->key_number == key_number) return m->registration;
  }
  return 0;
}

void library::misuse(std::string_view what, std::string sentence) {
  the_world().violate("driver misuse: " + std::string(what), owner.name() + ": " + std::move(sentence));
}

// entering ----------------------------------------------------------------------------------------------------

detail::scheduling_point::scheduling_point(function f) {
  if (!kernel_access::scheduling()) return;
  world& w = world::current();
  object_id id = 0;
  {
    static const char key = 0;
    kernel_scope scope;
    auto& objects = w.attachment<function_objects>(&key, [] { return std::make_shared<function_objects>(); });
    object_id& known = objects.ids[static_cast<std::size_t>(f)];
    if (known == 0) known = w.new_shared_object(function_names[static_cast<std::size_t>(f)]);
    id = known;
  }
  w.point(op_kind::driver_call, id);
}

call::call(function f, const void* subject)
    : point_(f), function_(f), library_(&library_of(*world::current().running_host())) {
  enter(subject);
}

call::call(function f, const void* subject, at_once)
    : function_(f), library_(&library_of(*world::current().running_host())) {
  enter(subject);
}

void call::enter(const void* subject) {
  world& w = the_world();
  host& h = owner();
  const auto* const about = static_cast<const object*>(subject);
  w.log(&h, hardware_event::driver_call, static_cast<std::uint64_t>(function_),
        about != nullptr && about->magic == object::made_here ? about->number : 0);
  if (w.locks_held_by_running_fiber() != 0) {
    const fiber& self = *w.running();
    w.violate("driver call under a lock", self.name + " called " + std::string(name()) + " while it holds " +
                                              w.object_name(self.held[self.held_count - 1].object));
  }
  fault_plan& plan = library_->faults();
  // From an event of its own: the caller is a fiber of this very host.
  if (const fault* const f1 = plan.strike(h, "host.crash"); f1 != nullptr) {
    const std::int64_t again_ns = f1->what == "restart" ? std::max<std::int64_t>(f1->value, 0) : -1;
    h.at(w.now(), [&h, &w, again_ns] {
      h.crash();
      if (again_ns >= 0) w.at(w.now() + again_ns, [&h] { h.restart(); });
    });
  }
  if (const fault* const f2 = plan.strike(h, "host.pause"); f2 != nullptr) {
    const std::int64_t pause_ns = f2->value;
    h.at(w.now(), [&h, &w, pause_ns] {
      if (h.paused()) return;
      h.pause();
      if (pause_ns > 0) h.at(w.now() + pause_ns, [&h] { h.resume(); });
    });
  }
}

object* call::find_object(const void* handle, object_kind kind) {
  auto* const o = static_cast<object*>(const_cast<void*>(handle));
  const auto given = [this] { return std::string(name()) + " was given "; };
  if (o == nullptr || o->magic != object::made_here || o->kind != kind) {
    lib().misuse("no such handle", given() + "what is no " + std::string(ucp_double::name_of(kind)));
    return nullptr;
  }
  if (&o->lib != library_) {
    the_world().log(&owner(), hardware_event::driver_handle_foreign, o->number, o->lib.owner.index());
    lib().misuse("foreign handle", given() + std::string(ucp_double::name_of(kind)) + " of another host or life");
    return nullptr;
  }
  if (o->gone) {
    lib().misuse("use after end", given() + std::string(ucp_double::name_of(kind)) + " " + std::to_string(o->number) +
                                      ", which was closed, destroyed or freed before");
    return nullptr;
  }
  return o;
}

bool call::on_thread_of(worker& w, bool keeps_armed) {
  // Any other call may touch the descriptor behind the program's back: what it armed is not armed any more.
  if (!keeps_armed) w.armed = false;
  const fiber* const self = the_world().running();
  if (w.thread == nullptr || self == nullptr || w.thread == self) return true;
  lib().misuse("wrong thread", std::string(name()) + " on worker " + std::to_string(w.number) + " of " +
                                   w.thread->name + " was called by " + self->name);
  return false;
}

worker* call::find_worker(const void* handle, bool keeps_armed) {
  auto* const w = find<worker>(handle, object_kind::worker);
  return w != nullptr && on_thread_of(*w, keeps_armed) ? w : nullptr;
}

endpoint* call::find_endpoint(const void* handle) {
  auto* const e = find<endpoint>(handle, object_kind::endpoint);
  return e != nullptr && on_thread_of(e->owner) ? e : nullptr;
}

ucs_status_t call::fault_status(std::string_view point, ucs_status_t otherwise) {
  const fault* const f = library_->faults().strike(owner(), point);
  if (f == nullptr) return UCS_OK;
  return f->value < 0 ? static_cast<ucs_status_t>(f->value) : otherwise;
}

void spend(std::int64_t duration_ns) {
  if (duration_ns <= 0 || !kernel_access::scheduling()) return;
  world& w = world::current();
  w.block(op_kind::driver_call, 0, w.now() + duration_ns);
}

void never_return() {
  world& w = world::current();
  {
    kernel_scope scope;
    library_of(*w.running_host()).forgive_leaks();
    w.forgive(*w.running());
  }
  for (;;) w.block(op_kind::driver_call, 0, std::numeric_limits<std::int64_t>::max());
}

}  // namespace ucp_double

ucp_settings& ucp_settings_of(host& h) {
  static const char key = 0;
  using table = std::map<std::uint16_t, ucp_settings>;
  kernel_scope scope;
  return h.owner().attachment<table>(&key, [] { return std::make_shared<table>(); })[h.index()];
}

}  // namespace holdfast::sim
