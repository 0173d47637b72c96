#include <sim/hardware/nic.hpp>

#include <sim/faults/fault_plan.hpp>

#include <utility>

namespace holdfast::sim {

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t mib = std::size_t{1} << 20;

std::int64_t cost(std::int64_t base_ns, std::int64_t ns_per_mib, std::size_t bytes) noexcept {
  // Whole mebibytes and the rest apart, so that nothing overflows and small ranges cost a little too.
  const auto whole = static_cast<std::int64_t>(bytes / mib);
  const auto rest = static_cast<std::int64_t>(bytes % mib);
  return base_ns + whole * ns_per_mib + rest * ns_per_mib / static_cast<std::int64_t>(mib);
}

}  // namespace

nic& nic_of(host& h) {
  // The card stays through crashes of its host; what was registered on it went with the host's memory.
  static const char key = 0;
  using cards = std::map<std::uint16_t, nic>;
  kernel_scope scope;
  auto& all = h.owner().attachment<cards>(&key, [] { return std::make_shared<cards>(); });
  return all.try_emplace(h.index(), h).first->second;
}

registration_attempt nic::begin_register(const std::byte* base, std::size_t bytes) {
  registration_attempt attempt;
  host_memory& memory = memory_of(host_);
  const auto low = reinterpret_cast<std::uintptr_t>(base) / page_bytes * page_bytes;
  const auto high = (reinterpret_cast<std::uintptr_t>(base) + bytes + page_bytes - 1) / page_bytes * page_bytes;
  attempt.base = reinterpret_cast<std::byte*>(low);
  attempt.bytes = high - low;
  attempt.duration_ns = cost(settings.register_base_ns, settings.register_ns_per_mib, attempt.bytes);
  if (failed_) {
    attempt.answer = registration_answer::device_lost;
  } else if (bytes == 0 || !memory.owned(base, bytes)) {
    attempt.answer = registration_answer::bad_range;
  } else if (attempt.bytes > settings.region_bytes_max || memory.held_pins() >= settings.registrations_max ||
             memory.held_bytes() > settings.registered_bytes_max ||
             settings.registered_bytes_max - memory.held_bytes() < attempt.bytes) {
    attempt.answer = registration_answer::limit;
  }
  if (const fault* const f = fault_plan::of(host_.owner()).strike(host_, "nic.register"); f != nullptr) {
    if (f->what == "refuse") attempt.answer = registration_answer::no_memory;
    if (f->what == "limit") attempt.answer = registration_answer::limit;
    if (f->what == "delay") attempt.duration_ns += f->value;
    if (f->what == "never") attempt.never = true;
    if (f->what == "short" && attempt.bytes > page_bytes) attempt.bytes -= page_bytes;
  }
  return attempt;
}

std::uint64_t nic::finish_register(registration_attempt& attempt, std::uint64_t context) {
  host_memory& memory = memory_of(host_);
  if (attempt.answer == registration_answer::ok && !memory.owned(attempt.base, attempt.bytes)) {
    attempt.answer = registration_answer::bad_range;
  }
  if (attempt.answer != registration_answer::ok) {
    host_.owner().log(&host_, hardware_event::nic_register_refused, memory.name_of(attempt.base).block, attempt.bytes);
    return 0;
  }
  return memory.add_pin(attempt.base, attempt.bytes, context);
}

deregistration_attempt nic::begin_deregister(std::uint64_t registration) {
  deregistration_attempt attempt;
  host_memory& memory = memory_of(host_);
  const pin* const p = memory.find_pin(registration);
  attempt.duration_ns = cost(settings.deregister_base_ns, settings.deregister_ns_per_mib, p == nullptr ? 0 : p->bytes);
  memory.begin_unpin(registration);
  if (failed_) attempt.takes_effect = false;
  if (const fault* const f = fault_plan::of(host_.owner()).strike(host_, "nic.deregister"); f != nullptr) {
    if (f->what == "slow") attempt.duration_ns += f->value;
    if (f->what == "never") attempt.never = true;
    if (f->what == "error" || f->what == "lie") attempt.takes_effect = false;
  }
  return attempt;
}

void nic::fail() {
  kernel_scope scope;
  if (std::exchange(failed_, true)) return;
  host_.owner().log(&host_, hardware_event::nic_device_failed, memory_of(host_).held_pins());
  const auto watchers = std::move(watchers_);
  watchers_.clear();
  for (const watcher& w : watchers) {
    if (!w.alive.expired()) w.what();
  }
}

void nic::set_port(bool up) {
  kernel_scope scope;
  if (std::exchange(port_up_, up) == up) return;
  host_.owner().log(&host_, hardware_event::nic_port_changed, up);
}

void nic::replace() {
  failed_ = false;
  port_up_ = true;
}

void nic::on_failure(std::weak_ptr<const char> alive, std::function<void()> what) {
  kernel_scope scope;
  std::erase_if(watchers_, [](const watcher& w) { return w.alive.expired(); });
  watchers_.push_back({std::move(alive), std::move(what)});
}

void nic::finish_deregister(std::uint64_t registration, const deregistration_attempt& attempt) {
  memory_of(host_).claim_unpinned(registration, attempt.takes_effect);
}

}  // namespace holdfast::sim
