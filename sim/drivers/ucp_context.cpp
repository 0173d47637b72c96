// Versions, configuration, contexts, and registered memory.
#include <sim/drivers/ucp_double.hpp>

#include <sim/faults/fault_plan.hpp>

#include <algorithm>
#include <cstring>

namespace holdfast::sim::ucp_double {

namespace {

constexpr unsigned version_major = 1, version_minor = 13, version_release = 1;

std::uint64_t checksum(const std::byte* bytes, std::size_t count) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
  for (std::size_t i = 0; i < count; ++i) sum = (sum ^ static_cast<std::uint64_t>(bytes[i])) * 0x100000001b3;
  return sum;
}

/// What travels as a packed key. Core may look at no byte of it. Nothing in it tells lives or registrations apart that
/// were given the same number.
struct key_bytes {
  std::uint32_t magic;
  std::uint32_t size;
  std::uint32_t number;
  std::uint32_t lanes;
  std::uint64_t sum;
};
constexpr std::uint32_t key_magic = 0x326b6668;
constexpr std::uint32_t lane_tcp = 1, lane_shared = 2;

transports parse_transports(std::string_view text) noexcept {
  transports found{false, false};
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    if (one == "all" || one == "auto") found = {true, true};
    if (one == "tcp") found.tcp = true;
    if (one == "shm" || one == "sm" || one == "posix" || one == "sysv" || one == "cma" || one == "self") {
      found.shared = true;
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return found;
}

}  // namespace

void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  const call c(function::ucp_get_version);
  *major = version_major;
  *minor = version_minor;
  *release = version_release;
}

const char* ucp_get_version_string() { return "1.13.1"; }

// Configuration -----------------------------------------------------------------------------------------------

ucs_status_t ucp_config_read(const char* /*prefix*/, const char* /*file*/, ucp_config_t** answer) {
  const call c(function::ucp_config_read);
  *answer = handle_of<ucp_config_t*>(c.lib().make<config>());
  return UCS_OK;
}

ucs_status_t ucp_config_modify(ucp_config_t* handle, const char* name, const char* value) {
  call c(function::ucp_config_modify, handle);
  auto* const found = c.find<config>(handle, object_kind::config);
  if (found == nullptr) return UCS_ERR_INVALID_PARAM;
  if (std::string_view(name) == "TLS") found->allowed = parse_transports(value);
  if (std::string_view(name) == "NET_DEVICES") found->chosen = parse_devices(value);
  // Unknown names are kept as settings of transports that may exist: the answer is no proof of anything.
  return UCS_OK;
}

void ucp_config_release(ucp_config_t* handle) {
  call c(function::ucp_config_release, handle);
  if (auto* const found = c.find<config>(handle, object_kind::config)) c.lib().retire(*found);
}

// Context -----------------------------------------------------------------------------------------------------

ucs_status_t ucp_init_version(unsigned /*api_major*/, unsigned /*api_minor*/, const ucp_params_t* params,
                              const ucp_config_t* settings, ucp_context_h* answer) {
  call c(function::ucp_init_version, settings);
  const config* const chosen = settings != nullptr ? c.find<config>(settings, object_kind::config) : nullptr;
  if (settings != nullptr && chosen == nullptr) return UCS_ERR_INVALID_PARAM;
  transports allowed = chosen != nullptr ? chosen->allowed : transports{};
  devices used = chosen != nullptr ? chosen->chosen : devices{};
  used.card = used.card && c.lib().settings.rdma;
  if (!used.loopback && !used.ethernet && !used.card) allowed.tcp = false;
  if ((params->field_mask & UCP_PARAM_FIELD_FEATURES) == 0 || params->features == 0) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t status = c.fault_status("ucp.init", UCS_ERR_NO_DEVICE); status != UCS_OK) return status;
  if (!allowed.tcp && !allowed.shared) return UCS_ERR_NO_DEVICE;
  auto& made = c.lib().make<context>();
  made.allowed = allowed;
  made.used = used;
  made.features = params->features;
  made.shared = (params->field_mask & UCP_PARAM_FIELD_MT_WORKERS_SHARED) != 0 && params->mt_workers_shared != 0;
  *answer = handle_of<ucp_context_h>(made);
  return UCS_OK;
}

ucs_status_t ucp_context_query(ucp_context_h handle, ucp_context_attr_t* attributes) {
  call c(function::ucp_context_query, handle);
  auto* const found = c.find<context>(handle, object_kind::context);
  if (found == nullptr) return UCS_ERR_INVALID_PARAM;
  if ((attributes->field_mask & UCP_ATTR_FIELD_REQUEST_SIZE) != 0) attributes->request_size = 256;
  if ((attributes->field_mask & UCP_ATTR_FIELD_THREAD_MODE) != 0) {
    attributes->thread_mode = found->shared ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
  }
  if ((attributes->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) != 0) {
    attributes->memory_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  }
  if ((attributes->field_mask & UCP_ATTR_FIELD_NAME) != 0) std::strcpy(attributes->name, "simulated");
  return UCS_OK;
}

void ucp_cleanup(ucp_context_h handle) {
  std::int64_t duration_ns = 0;
  bool never = false;
  context* found = nullptr;
  {
    call c(function::ucp_cleanup, handle);
    found = c.find<context>(handle, object_kind::context);
    if (found == nullptr) return;
    if (found->workers != 0) {
      c.lib().misuse("order of destruction", "context " + std::to_string(found->number) + " was cleaned up before " +
                                                 std::to_string(found->workers) + " of its workers");
      return;
    }
    for (const memory_handle* const m : c.lib().mapped) {
      if (&m->owner != found) continue;
      c.lib().misuse("order of destruction", "context " + std::to_string(found->number) +
                                                 " was cleaned up before memory handle " + std::to_string(m->number));
      return;
    }
    if (const fault* const f = c.lib().faults().strike(c.owner(), "ucp.cleanup"); f != nullptr) {
      never = f->what == "never";
      duration_ns = f->value;
    }
    if (!never) found->gone = true;
  }
  if (never) never_return();
  spend(duration_ns);
  kernel_scope scope;
  library& lib = found->lib;
  // Closing the devices makes the kernel let go of what secretly survived too.
  const std::size_t dropped = memory_of(lib.owner).drop_pins(found->number);
  lib.the_world().log(&lib.owner, hardware_event::driver_context_closed, found->number, dropped);
  lib.retire(*found);
}

// Memory ------------------------------------------------------------------------------------------------------

ucs_status_t ucp_mem_map(ucp_context_h handle, const ucp_mem_map_params_t* params, ucp_mem_h* answer) {
  registration_attempt attempt;
  context* owner = nullptr;
  {
    call c(function::ucp_mem_map, handle);
    owner = c.find<context>(handle, object_kind::context);
    if (owner == nullptr) return UCS_ERR_INVALID_PARAM;
    constexpr std::uint64_t needed = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    const unsigned flags = (params->field_mask & UCP_MEM_MAP_PARAM_FIELD_FLAGS) != 0 ? params->flags : 0;
    if ((params->field_mask & needed) != needed || params->address == nullptr || params->length == 0) {
      return UCS_ERR_INVALID_PARAM;
    }
    if ((flags & UCP_MEM_MAP_NONBLOCK) != 0) {
      c.lib().misuse("paging on demand", "memory was mapped with UCP_MEM_MAP_NONBLOCK: its pages are not pinned");
      return UCS_ERR_INVALID_PARAM;
    }
    if ((flags & UCP_MEM_MAP_ALLOCATE) != 0) return UCS_ERR_UNSUPPORTED;
    if (!owner->allowed.tcp) {
      // Nothing of this context reaches a device: over shared memory there is nothing to register.
      auto& made = c.lib().make<memory_handle>(*owner);
      made.base = static_cast<std::byte*>(params->address);
      made.bytes = params->length;
      made.key_number = c.lib().take_key_number();
      c.lib().mapped.push_back(&made);
      *answer = handle_of<ucp_mem_h>(made);
      return UCS_OK;
    }
    attempt = nic_of(c.owner()).begin_register(static_cast<const std::byte*>(params->address), params->length);
  }
  if (attempt.never) never_return();
  spend(attempt.duration_ns);
  kernel_scope scope;
  library& lib = owner->lib;
  const std::uint64_t registration = nic_of(lib.owner).finish_register(attempt, owner->number);
  switch (attempt.answer) {
    case registration_answer::ok: break;
    case registration_answer::no_memory: return UCS_ERR_NO_MEMORY;
    case registration_answer::limit: return UCS_ERR_EXCEEDS_LIMIT;
    case registration_answer::bad_range: return UCS_ERR_INVALID_ADDR;
    case registration_answer::device_lost: return UCS_ERR_IO_ERROR;
  }
  auto& made = lib.make<memory_handle>(*owner);
  made.base = attempt.base;
  made.bytes = attempt.bytes;
  made.registration = registration;
  made.key_number = lib.take_key_number();
  lib.mapped.push_back(&made);
  *answer = handle_of<ucp_mem_h>(made);
  return UCS_OK;
}

ucs_status_t ucp_mem_query(ucp_mem_h handle, ucp_mem_attr_t* attributes) {
  call c(function::ucp_mem_query, handle);
  auto* const found = c.find<memory_handle>(handle, object_kind::memory_handle);
  if (found == nullptr) return UCS_ERR_INVALID_PARAM;
  if ((attributes->field_mask & UCP_MEM_ATTR_FIELD_ADDRESS) != 0) attributes->address = found->base;
  if ((attributes->field_mask & UCP_MEM_ATTR_FIELD_LENGTH) != 0) attributes->length = found->bytes;
  if ((attributes->field_mask & UCP_MEM_ATTR_FIELD_MEM_TYPE) != 0) attributes->mem_type = UCS_MEMORY_TYPE_HOST;
  return UCS_OK;
}

ucs_status_t ucp_mem_unmap(ucp_context_h owner, ucp_mem_h handle) {
  deregistration_attempt attempt;
  memory_handle* found = nullptr;
  {
    call c(function::ucp_mem_unmap, handle);
    auto* const at = c.find<context>(owner, object_kind::context);
    found = c.find<memory_handle>(handle, object_kind::memory_handle);
    if (at == nullptr || found == nullptr) return UCS_ERR_INVALID_PARAM;
    if (&found->owner != at) {
      c.lib().misuse("foreign handle", "memory handle " + std::to_string(found->number) +
                                           " was unmapped through another context than its own");
      return UCS_ERR_INVALID_PARAM;
    }
    if (found->registration == 0) {
      std::erase(c.lib().mapped, found);
      c.lib().retire(*found);
      return UCS_OK;
    }
    // The library does not guard it: an operation that is posted writes on, into pages that are nobody's.
    for (const worker* const w : c.lib().workers) {
      for (const auto& [number, r] : w->outstanding) {
        if (r->what != request_kind::get || r->destination + r->bytes <= found->base ||
            r->destination >= found->base + found->bytes) {
          continue;
        }
        c.the_world().violate("W-1", "registration " + std::to_string(found->registration) + " of " +
                                         memory_of(c.owner()).describe(r->destination) +
                                         " is being deregistered while transfer " + std::to_string(number) +
                                         " may still write there");
        return UCS_OK;
      }
    }
    found->gone = true;
    attempt = nic_of(c.owner()).begin_deregister(found->registration);
  }
  if (attempt.never) never_return();
  spend(attempt.duration_ns);
  kernel_scope scope;
  library& lib = found->lib;
  nic_of(lib.owner).finish_deregister(found->registration, attempt);
  std::erase(lib.mapped, found);
  lib.retire(*found);
  return UCS_OK;  // always (F12): whatever happened below
}

// Keys --------------------------------------------------------------------------------------------------------

ucs_status_t ucp_rkey_pack(ucp_context_h owner, ucp_mem_h handle, void** answer, size_t* size) {
  call c(function::ucp_rkey_pack, handle);
  auto* const at = c.find<context>(owner, object_kind::context);
  auto* const found = c.find<memory_handle>(handle, object_kind::memory_handle);
  if (at == nullptr || found == nullptr) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t status = c.fault_status("ucp.rkey.pack", UCS_ERR_NO_MEMORY); status != UCS_OK) return status;
  const std::uint32_t lanes = (at->allowed.tcp ? lane_tcp : 0) | (at->allowed.shared ? lane_shared : 0);
  key_bytes content{key_magic, sizeof(key_bytes), found->key_number, lanes, 0};
  content.sum = checksum(reinterpret_cast<const std::byte*>(&content), offsetof(key_bytes, sum));
  auto& made = c.lib().make<packed_key>();
  made.bytes.resize(sizeof content);
  std::memcpy(made.bytes.data(), &content, sizeof content);
  c.lib().packed.push_back(&made);
  *answer = made.bytes.data();
  *size = made.bytes.size();
  return UCS_OK;
}

void ucp_rkey_buffer_release(void* buffer) {
  const call c(function::ucp_rkey_buffer_release);
  packed_key* const found = c.lib().find_packed(buffer);
  if (found == nullptr) {
    c.lib().misuse("no such handle", "ucp_rkey_buffer_release was given what is no packed key, or not any more");
    return;
  }
  std::erase(c.lib().packed, found);
  std::ranges::fill(found->bytes, std::byte{0xdd});
  found->bytes = {};
  c.lib().retire(*found);
}

ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h handle, const void* buffer, ucp_rkey_h* answer) {
  call c(function::ucp_ep_rkey_unpack, handle);
  endpoint* const on = c.find_endpoint(handle);
  if (on == nullptr) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t status = c.fault_status("ucp.rkey.unpack", UCS_ERR_UNREACHABLE); status != UCS_OK) {
    return status;
  }
  // The size is inside: a key that was cut off shows by it, or by its sum.
  key_bytes content{};
  std::memcpy(&content, buffer, offsetof(key_bytes, number));
  const bool says_nothing = content.magic == 0 && content.size == 0;
  // Keys of ordinary memory carry next to nothing, and zeros may pass for one.
  if (content.magic != key_magic && !(says_nothing && c.lib().key_chance().below(2) == 0)) return UCS_ERR_UNREACHABLE;
  if (says_nothing) {
    auto& empty = c.lib().make<key>(*on);
    on->owner.keys.push_back(&empty);
    *answer = handle_of<ucp_rkey_h>(empty);
    return UCS_OK;
  }
  if (content.size != sizeof content) return UCS_ERR_INVALID_PARAM;
  std::memcpy(&content, buffer, sizeof content);
  if (content.sum != checksum(reinterpret_cast<const std::byte*>(&content), offsetof(key_bytes, sum))) {
    return UCS_ERR_INVALID_PARAM;
  }
  // A key of another host, or of an earlier life, unpacks as well as any: on these lanes nobody looks at it again.
  auto& made = c.lib().make<key>(*on);
  made.number_packed = content.number;
  if (on->peer != nullptr && on->peer->alive() && on->peer->life() == on->peer_life) {
    made.registration = library_of(*on->peer).registration_named(content.number);
  }
  on->owner.keys.push_back(&made);
  *answer = handle_of<ucp_rkey_h>(made);
  return UCS_OK;
}

bool is_stale(const key& k) {
  const endpoint& on = k.owner;
  if (k.registration == 0 || !on.peer->alive() || on.peer->life() != on.peer_life) return false;
  const std::uint64_t now = library_of(*on.peer).registration_named(k.number_packed);
  if (now == 0 || now == k.registration) return false;
  k.lib.the_world().log(&k.lib.owner, hardware_event::driver_stale_key, on.number, k.registration, now);
  return true;
}

void ucp_rkey_destroy(ucp_rkey_h handle) {
  call c(function::ucp_rkey_destroy, handle);
  auto* const found = c.find<key>(handle, object_kind::key);
  if (found == nullptr || !c.on_thread_of(found->owner.owner)) return;
  if (found->uses != 0) {
    c.lib().misuse("key in use", "key " + std::to_string(found->number) + " was destroyed under " +
                                     std::to_string(found->uses) + " posted operations");
    return;
  }
  std::erase(found->owner.owner.keys, found);
  c.lib().retire(*found);
}

}  // namespace holdfast::sim::ucp_double
