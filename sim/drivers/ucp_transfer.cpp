// What travels over endpoints: GETs and active messages.
#include <sim/drivers/ucp_double.hpp>

#include <sim/faults/fault_plan.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

namespace holdfast::sim::ucp_double {

namespace {

/// Bytes of `count` elements, if the type is contiguous.
std::optional<std::size_t> bytes_of(std::size_t count, const ucp_request_param_t& param) noexcept {
  if ((param.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0) return count;
  if ((param.datatype & UCP_DATATYPE_CLASS_MASK) != UCP_DATATYPE_CONTIG) return std::nullopt;
  return count * static_cast<std::size_t>(param.datatype >> UCP_DATATYPE_SHIFT);
}

void take_callback(request& r, const ucp_request_param_t& param) {
  if ((param.op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) != 0) r.callback = param.cb.send;
  if ((param.op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) != 0) r.user_data = param.user_data;
}

bool must_post(const ucp_request_param_t& param) noexcept {
  return (param.op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) != 0;
}

std::vector<std::byte> copy_of(const void* from, std::size_t bytes) {
  std::vector<std::byte> copy(bytes);
  if (bytes != 0) std::memcpy(copy.data(), from, bytes);
  return copy;
}

// As a one-sided lane would: no progress of the owner.
bool get_inline(library& lib, const endpoint& e, std::byte* to, std::size_t bytes, std::uint64_t address, bool stale) {
  if (e.peer == nullptr || !e.peer->alive() || e.peer->life() != e.peer_life) return false;
  std::vector<std::byte> copy(bytes);
  if (!memory_of(*e.peer).dma_read(copy.data(), reinterpret_cast<const std::byte*>(address), bytes, 0, false))
    return true;
  if (stale) std::ranges::fill(copy, std::byte{0xee});
  host_memory& mine = memory_of(lib.owner);
  mine.dma_write(to, copy.data(), bytes, 0, mine.admit(0, to));
  return true;
}

void break_device(host& h) {
  const fault* const f = fault_plan::of(h.owner()).strike(h, "nic.device");
  if (f == nullptr) return;
  nic& card = nic_of(h);
  world& w = h.owner();
  if (f->what == "fatal") {
    w.at(w.now(), [&card] { card.fail(); });
    return;
  }
  w.at(w.now(), [&card] { card.set_port(false); });
  if (f->value > 0) w.at(w.now() + f->value, [&card] { card.set_port(true); });
}

void leave(endpoint& e, std::uint64_t request, std::uint16_t am_id, bool wants_reply, bool rendezvous,
           std::vector<std::byte> header, std::vector<std::byte> body) {
  auto m = std::make_unique<message>(message_kind::active);
  m->request = request;
  m->am_id = am_id;
  m->wants_reply = wants_reply;
  m->rendezvous = rendezvous;
  m->header = std::move(header);
  m->body = std::move(body);
  post(e, std::move(m));
}

}  // namespace

ucs_status_ptr_t ucp_get_nbx(ucp_ep_h handle, void* buffer, size_t count, uint64_t remote_address,
                             ucp_rkey_h key_handle, const ucp_request_param_t* param) {
  call c(function::ucp_get_nbx, handle);
  endpoint* const e = c.find_endpoint(handle);
  auto* const k = c.find<key>(key_handle, object_kind::key);
  if (e == nullptr || k == nullptr) return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
  if (&k->owner != e) {
    c.lib().misuse("foreign handle", "a GET on endpoint " + std::to_string(e->number) + " used key " +
                                         std::to_string(k->number) + " of another endpoint");
    return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
  }
  const auto bytes = bytes_of(count, *param);
  if (!bytes) return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
  if (e->failed != UCS_OK) return UCS_STATUS_PTR(e->failed);
  if (const ucs_status_t status = c.fault_status("ucp.get.error", UCS_ERR_NO_MEMORY); status != UCS_OK) {
    return UCS_STATUS_PTR(status);
  }
  if (*bytes == 0) return nullptr;
  if (c.lib().settings.rdma) break_device(c.owner());
  auto* const to = static_cast<std::byte*>(buffer);
  fault_plan& plan = c.lib().faults();
  // This library ignores the memory handle (F15), so nothing is done with it here.
  const bool planned = plan.strike(c.owner(), "ucp.get.inline") != nullptr;
  const bool stale = is_stale(*k) && c.lib().key_chance().chance(c.lib().settings.stale_key_permille);
  if (e->connected && !must_post(*param) && !is_one_sided(*e)) {
    const ucp_settings& rules = c.lib().settings;
    const bool lucky = *bytes <= rules.inline_bytes_max && c.lib().chance().chance(rules.inline_permille);
    if ((planned || lucky) && get_inline(c.lib(), *e, to, *bytes, remote_address, stale)) return nullptr;
  }
  request& r = c.lib().make_request(request_kind::get, e->owner);
  r.on = e;
  r.with = k;
  r.destination = to;
  r.bytes = *bytes;
  r.stale = stale;
  take_callback(r, *param);
  host_memory& mine = memory_of(c.owner());
  r.admission = mine.admit(r.number, to);
  ++k->uses;
  ++e->operations;
  e->owner.outstanding.emplace(r.number, &r);
  const memory_place place = mine.name_of(to);
  c.the_world().log(&c.owner(), hardware_event::driver_get_posted, r.number, place.block, place.offset, *bytes,
                    e->number);
  auto m = std::make_unique<message>(message_kind::get);
  m->request = r.number;
  m->address = remote_address;
  m->bytes_total = *bytes;
  post(*e, std::move(m));
  if (plan.strike(c.owner(), "ucp.ep.fail") != nullptr) {
    world& w = c.the_world();
    w.at(w.now(), [alive = std::weak_ptr<const char>(c.lib().alive), e] {
      if (!alive.expired() && !e->gone) e->broken(break_reason::timed_out);
    });
  }
  return handle_of<ucs_status_ptr_t>(r);
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h handle, unsigned id, const void* header, size_t header_bytes,
                                 const void* buffer, size_t count, const ucp_request_param_t* param) {
  call c(function::ucp_am_send_nbx, handle);
  endpoint* const e = c.find_endpoint(handle);
  const auto bytes = bytes_of(count, *param);
  if (e == nullptr || id > UINT16_MAX || header_bytes > max_am_header) return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
  if (!bytes) return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
  if (e->failed != UCS_OK) return UCS_STATUS_PTR(e->failed);
  if (const ucs_status_t status = c.fault_status("ucp.am.error", UCS_ERR_NO_MEMORY); status != UCS_OK) {
    return UCS_STATUS_PTR(status);
  }
  const ucp_settings& rules = c.lib().settings;
  const unsigned flags = (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) != 0 ? param->flags : 0;
  const bool wants_reply = (flags & UCP_AM_SEND_FLAG_REPLY) != 0;
  const bool rendezvous = (flags & UCP_AM_SEND_FLAG_RNDV) != 0 ||
                          ((flags & UCP_AM_SEND_FLAG_EAGER) == 0 && header_bytes + *bytes > rules.eager_bytes_max);
  const auto am_id = static_cast<std::uint16_t>(id);
  if (e->connected && !rendezvous && !must_post(*param) && !c.lib().chance().chance(rules.send_posted_permille)) {
    leave(*e, 0, am_id, wants_reply, false, copy_of(header, header_bytes), copy_of(buffer, *bytes));
    return nullptr;
  }
  request& r = c.lib().make_request(request_kind::send, e->owner);
  r.on = e;
  r.am_id = am_id;
  r.header = header;
  r.header_bytes = header_bytes;
  r.body = buffer;
  r.body_bytes = *bytes;
  r.wants_reply = wants_reply;
  r.rendezvous = rendezvous;
  take_callback(r, *param);
  ++e->operations;
  e->owner.outstanding.emplace(r.number, &r);
  e->owner.sends.push_back(&r);
  return handle_of<ucs_status_ptr_t>(r);
}

unsigned send_waiting(worker& w) {
  unsigned done = 0;
  for (std::size_t i = 0; i < w.sends.size() && done < w.lib.settings.progress_batch;) {
    request& r = *w.sends[i];
    if (!r.on->connected || r.ending) {
      ++i;
      continue;
    }
    w.sends.erase(w.sends.begin() + static_cast<std::ptrdiff_t>(i));
    ++done;
    // Header and data are read now (F20): what was freed since the call shows.
    leave(*r.on, r.number, r.am_id, r.wants_reply, r.rendezvous, copy_of(r.header, r.header_bytes),
          copy_of(r.body, r.body_bytes));
    // A rendezvous ends with the receiver's word.
    if (!r.rendezvous) finish(r, UCS_OK);
  }
  return done;
}

unsigned serve_pieces(worker& w) {
  unsigned done = 0;
  for (std::size_t i = 0; i < w.serving.size() && done < w.lib.settings.progress_batch; ++i) {
    served_read& s = w.serving[i];
    const std::uint64_t bytes = std::min(s.piece_bytes, s.bytes - s.done);
    auto m = std::make_unique<message>(message_kind::piece);
    m->request = s.request;
    m->offset = s.done;
    m->body.resize(bytes);
    // No look at any key (F14): whatever is at the address that the message named.
    memory_of(w.lib.owner)
        .dma_read(m->body.data(), reinterpret_cast<const std::byte*>(s.address + s.done), bytes, 0, false);
    s.done += bytes;
    post(*s.to, std::move(m));
    ++done;
  }
  std::erase_if(w.serving, [](const served_read& s) { return s.done == s.bytes; });
  return done;
}

}  // namespace holdfast::sim::ucp_double
