#include <sim/hardware/host_memory.hpp>

#include <sim/faults/fault_plan.hpp>
#include <sim/hardware/address_space.hpp>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace holdfast::sim {

namespace {
constexpr std::size_t dead_blocks_max = 64;

std::uintptr_t number_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }
}  // namespace

host_memory& memory_of(host& h) {
  static const char key = 0;
  kernel_scope scope;
  h.owner().touch();
  return h.state<host_memory>(&key, [&h] { return std::make_shared<host_memory>(h); });
}

host_memory::host_memory(host& h) : host_(h), history_(history_of(h)) {
  const auto slot = address_space::get().slot(h.index());
  slot_base_ = slot.data();
  slot_bytes_ = slot.size();
}

host_memory::~host_memory() {
  for (const auto& [base, b] : blocks_) address_space::get().withdraw(base, b.bytes);
}

host_memory::history& host_memory::history_of(host& h) {
  static const char key = 0;
  using histories = std::map<std::uint16_t, history>;
  return h.owner().attachment<histories>(&key, [] { return std::make_shared<histories>(); })[h.index()];
}

void host_memory::observe_dma(dma_observer& observer) {
  kernel_scope scope;
  history_.observers.push_back(&observer);
}

std::expected<std::byte*, int> host_memory::allocate(std::size_t bytes) {
  kernel_scope scope;
  if (bytes == 0 || bytes % page_bytes_ != 0) return std::unexpected(EINVAL);
  if (fault_plan::of(host_.owner()).strike(host_, "pages.allocate") != nullptr) return std::unexpected(ENOMEM);
  // First fit: an address that was given back is granted again as soon as possible, which is what a stale access
  // has to be confronted with.
  std::size_t at = 0;
  for (const auto& [base, b] : blocks_) {
    const auto start = static_cast<std::size_t>(base - slot_base_);
    if (start >= at && start - at >= bytes) break;
    at = (start + b.bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_;
  }
  if (at > slot_bytes_ || slot_bytes_ - at < bytes) return std::unexpected(ENOMEM);
  std::byte* const base = slot_base_ + at;
  if (!address_space::get().grant(base, bytes)) return std::unexpected(ENOMEM);
  const std::uint32_t number = history_.next_block++;
  blocks_.emplace(base, block{number, bytes, block_state::owned});
  owned_bytes_ += bytes;
  ++owned_blocks_;
  host_.owner().log(&host_, hardware_event::pages_owned, number, bytes);
  return base;
}

void host_memory::free(std::byte* base, std::size_t bytes) {
  kernel_scope scope;
  const auto found = take_back(base, bytes, "free");
  if (found == blocks_.end()) return;
  const block gone = found->second;
  blocks_.erase(found);
  bury(base, gone);
  address_space::get().withdraw(base, bytes);
  owned_bytes_ -= bytes;
  --owned_blocks_;
  host_.owner().log(&host_, hardware_event::pages_returned, gone.number, bytes);
}

bool host_memory::tombstone(std::byte* base, std::size_t bytes) {
  kernel_scope scope;
  if (fault_plan::of(host_.owner()).strike(host_, "pages.tombstone") != nullptr) {
    const auto kept = blocks_.find(base);
    host_.owner().log(&host_, hardware_event::pages_tombstone_refused, kept != blocks_.end() ? kept->second.number : 0,
                      bytes);
    return false;
  }
  const auto found = take_back(base, bytes, "tombstone");
  if (found == blocks_.end()) return false;
  found->second.state = block_state::tombstone;
  tag_range(base, bytes, 0);
  address_space::get().clear(base, bytes);
  owned_bytes_ -= bytes;
  --owned_blocks_;
  tombstone_bytes_ += bytes;
  host_.owner().log(&host_, hardware_event::pages_tombstoned, found->second.number, bytes);
  return true;
}

host_memory::block_map::iterator host_memory::take_back(std::byte* base, std::size_t bytes, const char* how) {
  world& w = host_.owner();
  const auto found = blocks_.find(base);
  if (found == blocks_.end() || found->second.bytes != bytes) {
    const bool inside = covering(base, 1) != blocks_.end();
    w.violate("page misuse", std::string(how) + " of " + std::to_string(bytes) + " bytes at " + describe(base) +
                                 (inside ? ", which is not a whole block" : ", which is no block of this host"));
    return blocks_.end();
  }
  if (found->second.state == block_state::tombstone) {
    // Dropping a tombstone for good is legal; making one twice is not.
    if (std::string_view(how) == "free") {
      tombstone_bytes_ -= bytes;
      owned_bytes_ += bytes;
      ++owned_blocks_;
      return found;
    }
    w.violate("page misuse", std::string(how) + " of " + describe(base) + ", which is a tombstone already");
    return blocks_.end();
  }
  if (const pin* const p = refusing_pin(found->second.number); p != nullptr) {
    w.violate("W-2", describe(base) + " (" + std::to_string(bytes) +
                         " bytes) was given back to the system while registration " + std::to_string(p->number) +
                         " of it is " + (p->state == pin_state::live ? "live" : "not confirmed gone"));
    return blocks_.end();
  }
  return found;
}

const pin* host_memory::refusing_pin(std::uint32_t block) const noexcept {
  for (const auto& [number, p] : pins_) {
    if (p.block == block && p.state != pin_state::claimed_gone) return &p;
  }
  return nullptr;
}

void host_memory::bury(std::byte* base, const block& b) {
  tag_range(base, b.bytes, 0);
  if (dead_.size() == dead_blocks_max) dead_.erase(dead_.begin());
  dead_.push_back({b.number, base, b.bytes});
}

host_memory::block_map::const_iterator host_memory::covering(const void* p, std::size_t bytes) const noexcept {
  auto* const at = static_cast<std::byte*>(const_cast<void*>(p));
  auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return blocks_.end();
  --next;
  const auto offset = number_of(at) - number_of(next->first);
  if (offset >= next->second.bytes || next->second.bytes - offset < bytes) return blocks_.end();
  return next;
}

memory_place host_memory::name_of(const void* p) const noexcept {
  if (const auto found = covering(p, 1); found != blocks_.end()) {
    return {found->second.number, number_of(p) - number_of(found->first)};
  }
  for (auto dead = dead_.rbegin(); dead != dead_.rend(); ++dead) {
    const std::uintptr_t offset = number_of(p) - number_of(dead->base);
    if (number_of(p) >= number_of(dead->base) && offset < dead->bytes) return {dead->number, offset};
  }
  return {};
}

bool host_memory::owned(const void* p, std::size_t bytes) const noexcept {
  const auto found = covering(p, bytes);
  return found != blocks_.end() && found->second.state == block_state::owned;
}

bool host_memory::is_tombstone(const void* p, std::size_t bytes) const noexcept {
  const auto found = covering(p, bytes);
  return found != blocks_.end() && found->second.state == block_state::tombstone;
}

std::string host_memory::describe(const void* p) const {
  kernel_scope scope;
  const memory_place place = name_of(p);
  if (place.block == 0) return host_.name() + " memory that was never its program's";
  return host_.name() + " block " + std::to_string(place.block) + " offset " + std::to_string(place.offset);
}

std::byte* host_memory::address_of(std::uint32_t block, std::uint64_t offset) const noexcept {
  for (const auto& [base, b] : blocks_) {
    if (b.number == block) return offset < b.bytes ? base + offset : nullptr;
  }
  return nullptr;
}

void host_memory::tag_range(const void* p, std::size_t bytes, std::uint64_t tag) {
  kernel_scope scope;
  if (bytes == 0) return;
  const std::uintptr_t low = number_of(p);
  const std::uintptr_t high = low + bytes;
  auto at = tags_.upper_bound(low);
  if (at != tags_.begin()) {
    const auto before = std::prev(at);
    if (before->second.end > low) {
      const tagged old = before->second;
      before->second.end = low;
      if (old.end > high) tags_.emplace(high, tagged{old.end, old.tag});
      if (before->first == low) tags_.erase(before);
    }
  }
  at = tags_.lower_bound(low);
  while (at != tags_.end() && at->first < high) {
    const tagged old = at->second;
    at = tags_.erase(at);
    if (old.end > high) {
      tags_.emplace(high, old);
      break;
    }
  }
  if (tag != 0) tags_.emplace(low, tagged{high, tag});
}

std::uint64_t host_memory::tag_of(const void* p) const noexcept {
  const std::uintptr_t at = number_of(p);
  auto next = tags_.upper_bound(at);
  if (next == tags_.begin()) return 0;
  --next;
  return at < next->second.end ? next->second.tag : 0;
}

std::uint64_t host_memory::add_pin(std::byte* base, std::size_t bytes, std::uint64_t context) {
  kernel_scope scope;
  const std::uint64_t number = history_.next_pin++;
  const memory_place place = name_of(base);
  pins_.emplace(number, pin{number, place.block, base, bytes, context, pin_state::live, true});
  host_.owner().log(&host_, hardware_event::nic_registered, number, place.block, place.offset, bytes);
  return number;
}

pin* host_memory::find_pin(std::uint64_t number) noexcept {
  const auto found = pins_.find(number);
  return found == pins_.end() ? nullptr : &found->second;
}

void host_memory::begin_unpin(std::uint64_t number) noexcept {
  if (pin* const p = find_pin(number); p != nullptr && p->state == pin_state::live) p->state = pin_state::unconfirmed;
}

void host_memory::claim_unpinned(std::uint64_t number, bool truly) {
  kernel_scope scope;
  pin* const p = find_pin(number);
  if (p == nullptr) return;
  p->state = pin_state::claimed_gone;
  if (!truly) {
    host_.owner().log(&host_, hardware_event::nic_deregister_failed, number, p->block);
    return;
  }
  host_.owner().log(&host_, hardware_event::nic_deregistered, number, p->block, p->bytes);
  pins_.erase(number);
}

std::size_t host_memory::drop_pins(std::uint64_t context) {
  kernel_scope scope;
  std::size_t dropped = 0;
  for (auto at = pins_.begin(); at != pins_.end();) {
    if (at->second.context != context) {
      ++at;
      continue;
    }
    host_.owner().log(&host_, hardware_event::nic_deregistered, at->first, at->second.block, at->second.bytes);
    at = pins_.erase(at);
    ++dropped;
  }
  return dropped;
}

std::size_t host_memory::held_pins() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(pins_, [](const auto& p) { return p.second.held; }));
}

std::uint64_t host_memory::held_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& [number, p] : pins_) bytes += p.held ? p.bytes : 0;
  return bytes;
}

bool host_memory::registered(const void* p, std::size_t bytes, std::uint64_t number) const noexcept {
  const auto found = covering(p, bytes);
  if (found == blocks_.end()) return false;
  for (const auto& [each, r] : pins_) {
    if (number != 0 && each != number) continue;
    // A registration belongs to the block that was there, not to the address.
    if (r.block != found->second.number || r.state == pin_state::claimed_gone || !r.held) continue;
    const std::uintptr_t offset = number_of(p) - number_of(r.base);
    if (number_of(p) >= number_of(r.base) && offset <= r.bytes && r.bytes - offset >= bytes) return true;
  }
  return false;
}

dma_admission host_memory::admit(std::uint64_t request, const void* destination) const noexcept {
  return {request, tag_of(destination)};
}

bool host_memory::dma_write(std::byte* to, const std::byte* from, std::size_t bytes, std::uint64_t registration,
                            const dma_admission& admission) {
  kernel_scope scope;
  world& w = host_.owner();
  const memory_place place = name_of(to);
  const bool is_owned = owned(to, bytes);
  const bool allowed = is_owned && registered(to, bytes, registration);
  w.log(&host_, hardware_event::dma_write, place.block, place.offset, bytes, registration, admission.request, allowed);
  if (!allowed) {
    w.violate("W-1", "transfer " + std::to_string(admission.request) + " wrote " + std::to_string(bytes) +
                         " bytes at " + describe(to) + ", which is " +
                         (is_owned ? "not registered (any more)" : "not owned by a program (any more)"));
    return false;
  }
  for (dma_observer* const o : history_.observers) o->on_dma_write(host_, place, bytes, admission.request);
  // Untagged bytes inside are nobody's: a late write there harms no tenant, and the hold that should have kept them
  // is somebody else's promise.
  for (std::uintptr_t at = number_of(to), end = at + bytes; at < end;) {
    auto next = tags_.upper_bound(at);
    std::uintptr_t piece_end = next == tags_.end() ? end : std::min<std::uintptr_t>(end, next->first);
    if (next != tags_.begin()) {
      const tagged& t = std::prev(next)->second;
      if (at < t.end) {
        piece_end = std::min(end, t.end);
        if (t.tag != admission.tag) {
          w.violate("W-3", "transfer " + std::to_string(admission.request) + " was admitted for tenant " +
                               std::to_string(admission.tag) + " and wrote into the bytes of tenant " +
                               std::to_string(t.tag) + " at " + describe(reinterpret_cast<void*>(at)));
          return false;
        }
      }
    }
    at = piece_end;
  }
  device_copy(to, from, bytes);
  return true;
}

bool host_memory::dma_read(std::byte* to, const std::byte* from, std::size_t bytes, std::uint64_t registration,
                           bool must_be_registered) {
  kernel_scope scope;
  world& w = host_.owner();
  const memory_place place = name_of(from);
  const bool zeros = is_tombstone(from, bytes);
  const bool allowed = zeros || (owned(from, bytes) && (!must_be_registered || registered(from, bytes, registration)));
  w.log(&host_, hardware_event::dma_read, place.block, place.offset, bytes, registration, allowed);
  if (!allowed) {
    std::fill_n(to, bytes, std::byte{0});
    w.violate("W-1", "a late or foreign request read " + std::to_string(bytes) + " bytes at " + describe(from) +
                         ", which is not owned and registered memory of a program (any more)");
    return false;
  }
  device_copy(to, from, bytes);
  return true;
}

}  // namespace holdfast::sim
