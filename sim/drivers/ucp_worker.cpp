// Workers: progress, arming, messages as they come in, the end of requests.
#include <sim/drivers/ucp_double.hpp>

#include <sim/faults/fault_plan.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace holdfast::sim::ucp_double {

// Inbox and descriptor ----------------------------------------------------------------------------------------

bool worker::readable() const noexcept {
  if (signalled) return true;
  if (stuck_looks == 0) return false;
  --stuck_looks;
  return true;
}

bool worker::has_work() const noexcept {
  return !inbox.empty() || !serving.empty() ||
         std::ranges::any_of(sends, [](const request* r) { return r->on->connected && !r->ending; });
}

void worker::receive(std::unique_ptr<message> m) {
  const auto& rules = lib.settings;
  // No order between active messages is promised, not even of one sender.
  const bool overtakes = m->kind == message_kind::active && !inbox.empty() &&
                         inbox.back()->kind == message_kind::active && lib.chance().chance(rules.reorder_permille);
  if (overtakes) {
    inbox.insert(std::prev(inbox.end()), std::move(m));
  } else {
    inbox.push_back(std::move(m));
  }
  notify();
}

void worker::notify() {
  // The descriptor promises nothing to who has not armed it.
  if (!armed) return;
  armed = false;
  signalled = true;
  lib.owner.descriptor_changed(efd);
}

// Ends of requests --------------------------------------------------------------------------------------------

void finish(request& r, ucs_status_t status) {
  worker& w = *r.through;
  endpoint* const on = r.on;
  library& lib = r.lib;
  w.outstanding.erase(r.number);
  r.status = status;
  r.ending = false;
  if (!r.released) ++w.unfreed;
  if (r.what != request_kind::close) --on->operations;
  if (r.what == request_kind::get) {
    --r.with->uses;
    lib.the_world().log(&lib.owner, hardware_event::driver_get_completed, r.number,
                        static_cast<std::uint64_t>(static_cast<std::int64_t>(status)), r.landed);
  }
  if (r.callback != nullptr) {
    lib.the_world().log(&lib.owner, hardware_event::driver_callback, r.number,
                        static_cast<std::uint64_t>(static_cast<std::int64_t>(status)));
    const core_scope core;
    // The request may be freed in here.
    r.callback(handle_of<object*>(r), status, r.user_data);
  } else if (r.released) {
    lib.retire(r);
  }
  continue_close(*on);
}

void finish_later(request& r, ucs_status_t status, std::int64_t spread_ns) {
  if (r.ending) return;
  r.ending = true;
  library& lib = r.lib;
  world& w = lib.the_world();
  const auto delay_ns =
      spread_ns <= 0 ? 0 : static_cast<std::int64_t>(lib.chance().below(static_cast<std::uint64_t>(spread_ns)));
  w.at(w.now() + delay_ns,
       [alive = std::weak_ptr<const char>(lib.alive), through = r.through, number = r.number, status] {
         if (alive.expired() || through->gone) return;
         auto m = std::make_unique<message>(message_kind::end_request);
         m->request = number;
         m->status = status;
         through->receive(std::move(m));
       });
}

// Messages ----------------------------------------------------------------------------------------------------

namespace {

void offer_connection(worker& w, message& m) {
  listener& at = *m.at;
  // Over a device that the context does not have: the library complains on standard error, and nobody gets an answer.
  if (!reaches(w.owner, static_cast<std::uint32_t>(m.address))) return;
  if (at.gone) {
    // Nobody is there any more to decide.
    fabric::of(w.lib.the_world()).send(m.where, side::server, std::make_unique<message>(message_kind::rejected), 64);
    fabric::of(w.lib.the_world()).close(m.where, side::server, true);
    return;
  }
  auto& made = w.lib.make<connection_request>(at);
  made.where = std::move(m.where);
  made.client = m.sender;
  made.client_life = m.sender_life;
  made.client_card = m.sender_card;
  ++w.undecided;
  const core_scope core;
  at.handler.cb(handle_of<ucp_conn_request_h>(made), at.handler.arg);
}

void deliver_active(worker& w, message& m) {
  const endpoint& to = *m.to;
  // A reply endpoint that is closed cannot be named, so such a message is dropped.
  if (to.gone && m.wants_reply) return;
  const auto found = w.handlers.find(m.am_id);
  ucs_status_t answer = UCS_OK;
  if (found != w.handlers.end() && found->second.callback != nullptr) {
    ucp_am_recv_param_t param{};
    if (m.wants_reply) {
      param.recv_attr |= UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
      param.reply_ep = handle_of<ucp_ep_h>(*m.to);
    }
    if (m.rendezvous) param.recv_attr |= UCP_AM_RECV_ATTR_FLAG_RNDV;
    const active_handler handler = found->second;
    const void* const header = m.header.empty() ? nullptr : m.header.data();
    const std::size_t length = m.body.size();
    // A descriptor is no data: whoever reads it as data sees these bytes.
    if (m.rendezvous) std::ranges::fill(m.body, std::byte{0xd5});
    const core_scope core;
    answer = handler.callback(handler.argument, header, m.header.size(), m.body.data(), length, &param);
  }
  // What was not copied is gone.
  std::ranges::fill(m.body, std::byte{0xdd});
  std::ranges::fill(m.header, std::byte{0xdd});
  if (answer == UCS_INPROGRESS || (answer != UCS_OK && !m.rendezvous)) {
    w.lib.misuse("active message", "the handler of message " + std::to_string(m.am_id) + " answered status " +
                                       std::to_string(answer) + ", which it may not for data that do not persist");
  }
  if (m.rendezvous && !m.to->gone) {
    auto done = std::make_unique<message>(message_kind::active_done);
    done->request = m.request;
    done->status = answer == UCS_INPROGRESS ? UCS_OK : answer;
    post(*m.to, std::move(done));
  }
}

void land_piece(worker& w, message& m) {
  // A reply whose request is gone is dropped.
  const auto found = w.outstanding.find(m.request);
  if (found == w.outstanding.end() || found->second->what != request_kind::get) return;
  request& r = *found->second;
  if (r.stale) std::ranges::fill(m.body, std::byte{0xee});
  if (!memory_of(w.lib.owner).dma_write(r.destination + m.offset, m.body.data(), m.body.size(), 0, r.admission)) return;
  r.landed += m.body.size();
  // An operation that is being cancelled still writes, and ends as cancelled.
  if (r.landed == r.bytes && !r.ending) finish(r, UCS_OK);
}

void begin_serving(worker& w, const message& m) {
  const endpoint& e = *m.to;
  if (e.gone || e.failed != UCS_OK) return;
  if (e.pair != 0 && e.passive && w.pairs[{e.peer->index(), e.peer_life}].closed.contains(e.pair)) {
    w.lib.misuse("use after close", "a read of " + e.peer->name() + " names endpoint number " + std::to_string(e.pair) +
                                        " towards it, which was closed although its peer could still read");
    return;
  }
  const auto& rules = w.lib.settings;
  // The first send finds out that nobody is there; the next one is an error that the library does not expect of itself.
  if (e.where != nullptr && !fabric::through_memory(*e.where) &&
      fabric::of(w.lib.the_world()).closed(*e.where, e.mine == side::client ? side::server : side::client)) {
    auto& sent = m.to->sent_in_vain;
    sent += std::max<std::uint64_t>(1, (m.bytes_total + rules.segment_bytes - 1) / rules.segment_bytes);
    if (sent > 1) {
      w.lib.misuse("reads at once",
                   "the second segment of replies to " + std::string(e.peer->name()) +
                       ", which is gone, ends this process: its reads did not take turns, or were longer "
                       "than a segment");
      return;
    }
  }
  const std::uint64_t pieces = std::max<std::uint64_t>(1, rules.pieces_max);
  std::uint64_t piece_bytes = std::max<std::uint64_t>(rules.piece_bytes_min, (m.bytes_total + pieces - 1) / pieces);
  piece_bytes = (piece_bytes + 63) / 64 * 64;
  w.serving.push_back({m.to, m.request, m.address, m.bytes_total, 0, piece_bytes});
}

ucs_status_t status_of(library& lib, const message& m) {
  if (m.status != UCS_OK) return m.status;
  // Core may not tell them apart.
  return lib.chance().below(3) == 0 ? UCS_ERR_ENDPOINT_TIMEOUT : UCS_ERR_CONNECTION_RESET;
}

}  // namespace

void handle(worker& w, message& m) {
  switch (m.kind) {
    case message_kind::connect:
      if (m.at != nullptr) {
        offer_connection(w, m);
      } else {
        answer_address(w, m);
      }
      return;
    case message_kind::accepted: {
      endpoint& e = *m.to;
      if (e.failed != UCS_OK) return;
      e.connected = true;
      e.peer = m.sender;
      e.peer_life = m.sender_life;
      e.peer_card = m.sender_card;
      auto queued = std::move(e.queue);
      e.queue.clear();
      for (auto& each : queued) post(e, std::move(each));
      continue_close(e);
      return;
    }
    case message_kind::rejected: fail_endpoint(*m.to, UCS_ERR_REJECTED); return;
    case message_kind::active: deliver_active(w, m); return;
    case message_kind::get: begin_serving(w, m); return;
    case message_kind::piece: land_piece(w, m); return;
    case message_kind::fin:
      post(*m.to, std::make_unique<message>(message_kind::fin_answer));
      fail_endpoint(*m.to, UCS_ERR_CONNECTION_RESET);
      return;
    case message_kind::fin_answer:
      if (m.to->closing != nullptr) {
        request& r = *std::exchange(m.to->closing, nullptr);
        detach(*m.to, true);
        finish(r, UCS_OK);
      }
      return;
    case message_kind::broke: fail_endpoint(*m.to, status_of(w.lib, m)); return;
    case message_kind::active_done:
    case message_kind::end_request: {
      const auto found = w.outstanding.find(m.request);
      if (found == w.outstanding.end()) return;
      request& r = *found->second;
      if (m.kind == message_kind::active_done && r.ending) return;
      std::erase(w.sends, &r);
      finish(r, m.status);
      return;
    }
  }
}

// Functions ---------------------------------------------------------------------------------------------------

ucs_status_t ucp_worker_create(ucp_context_h handle, const ucp_worker_params_t* params, ucp_worker_h* answer) {
  call c(function::ucp_worker_create, handle);
  auto* const owner = c.find<context>(handle, object_kind::context);
  if (owner == nullptr) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t status = c.fault_status("ucp.worker.create", UCS_ERR_NO_MEMORY); status != UCS_OK) {
    return status;
  }
  auto& made = c.lib().make<worker>(*owner);
  const bool many =
      (params->field_mask & UCP_WORKER_PARAM_FIELD_THREAD_MODE) != 0 && params->thread_mode != UCS_THREAD_MODE_SINGLE;
  if (!many) made.thread = c.the_world().running();
  if ((owner->features & UCP_FEATURE_WAKEUP) != 0) made.efd = c.owner().open_descriptor(made);
  ++owner->workers;
  c.lib().workers.push_back(&made);
  *answer = handle_of<ucp_worker_h>(made);
  return UCS_OK;
}

ucs_status_t ucp_worker_query(ucp_worker_h handle, ucp_worker_attr_t* attributes) {
  call c(function::ucp_worker_query, handle);
  worker* const w = c.find_worker(handle, true);
  if (w == nullptr) return UCS_ERR_INVALID_PARAM;
  if ((attributes->field_mask & (UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS)) != 0) {
    return UCS_ERR_UNSUPPORTED;
  }
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_THREAD_MODE) != 0) {
    attributes->thread_mode = w->thread != nullptr ? UCS_THREAD_MODE_SINGLE : UCS_THREAD_MODE_MULTI;
  }
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER) != 0) attributes->max_am_header = max_am_header;
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_NAME) != 0) std::strcpy(attributes->name, "simulated");
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING) != 0) attributes->max_debug_string = 256;
  return UCS_OK;
}

ucs_status_t ucp_worker_get_efd(ucp_worker_h handle, int* answer) {
  call c(function::ucp_worker_get_efd, handle);
  worker* const w = c.find_worker(handle, true);
  if (w == nullptr) return UCS_ERR_INVALID_PARAM;
  if (w->efd < 0) return UCS_ERR_UNSUPPORTED;
  *answer = w->efd;
  return UCS_OK;
}

ucs_status_t ucp_worker_arm(ucp_worker_h handle) {
  call c(function::ucp_worker_arm, handle);
  worker* const w = c.find_worker(handle);
  if (w == nullptr) return UCS_ERR_INVALID_PARAM;
  if (w->efd < 0) return UCS_ERR_UNSUPPORTED;
  if (w->progressing) {
    c.lib().misuse("inside a callback", "worker " + std::to_string(w->number) + " was armed inside a callback");
    return UCS_ERR_INVALID_PARAM;
  }
  if (const fault* const f = c.lib().faults().strike(c.owner(), "ucp.arm.busy"); f != nullptr) {
    if (f->what == "busy") return UCS_ERR_BUSY;
    if (f->what == "error") return f->value < 0 ? static_cast<ucs_status_t>(f->value) : UCS_ERR_IO_ERROR;
    w->stuck_looks = static_cast<std::uint64_t>(std::max<std::int64_t>(1, f->value));
  }
  if (w->has_work()) return UCS_ERR_BUSY;
  w->armed = true;
  w->signalled = false;
  return UCS_OK;
}

unsigned ucp_worker_progress(ucp_worker_h handle) {
  call c(function::ucp_worker_progress, handle);
  worker* const w = c.find_worker(handle);
  if (w == nullptr) return 0;
  if (w->progressing) {
    c.lib().misuse("inside a callback", "worker " + std::to_string(w->number) + " was progressed inside a callback");
    return 0;
  }
  return progress(*w);
}

unsigned progress(worker& w) {
  w.progressing = true;
  ++w.progressed;
  w.signalled = false;
  unsigned done = 0;
  while (done < w.lib.settings.progress_batch && !w.inbox.empty()) {
    w.current = std::move(w.inbox.front());
    w.inbox.pop_front();
    handle(w, *w.current);
    w.current.reset();
    ++done;
  }
  done += send_waiting(w);
  done += serve_pieces(w);
  w.progressing = false;
  return done;
}

ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h handle, const ucp_am_handler_param_t* param) {
  call c(function::ucp_worker_set_am_recv_handler, handle);
  worker* const w = c.find_worker(handle);
  if (w == nullptr || (param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ID) == 0 || param->id > UINT16_MAX) {
    return UCS_ERR_INVALID_PARAM;
  }
  active_handler& h = w->handlers[static_cast<std::uint16_t>(param->id)];
  h.callback = (param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_CB) != 0 ? param->cb : nullptr;
  h.argument = (param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ARG) != 0 ? param->arg : nullptr;
  return UCS_OK;
}

void ucp_worker_destroy(ucp_worker_h handle) {
  std::int64_t duration_ns = 0;
  bool slow = false;
  bool never = false;
  worker* w = nullptr;
  {
    call c(function::ucp_worker_destroy, handle);
    w = c.find_worker(handle);
    if (w == nullptr) return;
    std::string wrong;
    const auto number = [](std::size_t n) { return std::to_string(n); };
    if (w->progressing) wrong = "was destroyed inside a callback";
    if (!w->listeners.empty()) wrong = "was destroyed before " + number(w->listeners.size()) + " of its listeners";
    // A key whose operation never ended cannot go before; it is left to this destruction.
    const auto idle = std::ranges::count_if(w->keys, [](const key* k) { return k->uses == 0; });
    if (idle != 0) wrong = "was destroyed before " + std::to_string(idle) + " of its idle keys";
    // The library aborts if somebody still waits for a close then.
    const auto waited_for = std::ranges::count_if(w->outstanding, [](const auto& each) {
      return each.second->what == request_kind::close && !each.second->released;
    });
    if (waited_for != 0) wrong = "was destroyed with " + std::to_string(waited_for) + " closes that had not ended";
    if (w->undecided != 0) wrong = "was destroyed with " + number(w->undecided) + " connection requests undecided";
    // A transfer on an endpoint with error mode PEER must have been cancelled by a forced close, or the library aborts.
    for (const auto& [n, r] : w->outstanding) {
      const bool transfer = r->what == request_kind::get || (r->what == request_kind::send && r->rendezvous);
      if (!transfer || !r->on->peer_mode || r->on->forced || r->on->failed != UCS_OK) continue;
      wrong = "was destroyed under transfer " + number(n) + " of endpoint " + number(r->on->number) +
              ", which has error mode PEER and was not closed by force";
      break;
    }
    if (w->unfreed != 0)
      wrong = "was destroyed with " + number(w->unfreed) + " requests that had ended and were not freed";
    if (!wrong.empty()) {
      c.lib().misuse("order of destruction", "worker " + number(w->number) + ' ' + wrong);
      return;
    }
    if (const fault* const f = c.lib().faults().strike(c.owner(), "ucp.worker.destroy"); f != nullptr) {
      never = f->what == "never";
      slow = !never;
      duration_ns = f->value;
    }
  }
  if (never) never_return();
  spend(duration_ns);
  kernel_scope scope;
  library& lib = w->lib;
  // A destruction that takes its time progresses meanwhile: bytes land and callbacks run until it returns.
  if (slow) progress(*w);
  // What a forced close cancelled is called back in here, if no progress came between. (Otherwise the library would have
  // called back by then; here it may take longer, and then ends without.)
  w->progressing = true;
  std::vector<request*> cancelled;
  for (const auto& [number, r] : w->outstanding) {
    if (r->what != request_kind::close && r->on->forced && r->on->forced_at == w->progressed) cancelled.push_back(r);
  }
  for (request* const r : cancelled) finish(*r, UCS_ERR_CANCELED);
  w->progressing = false;
  w->gone = true;
  // Other operations end here without a callback (F10).
  const std::size_t dropped = w->outstanding.size();
  for (const auto& [number, r] : w->outstanding) {
    if (r->what == request_kind::get) --r->with->uses;
    lib.retire(*r);
  }
  w->outstanding.clear();
  for (key* const k : w->keys) lib.retire(*k);
  w->keys.clear();
  w->sends.clear();
  w->serving.clear();
  while (!w->endpoints.empty()) {
    endpoint& e = *w->endpoints.back();
    e.closing = nullptr;
    if (!e.gone) lib.retire(e);
    detach(e, false);
  }
  if (w->address_port != 0) fabric::of(lib.the_world()).stop_listening(lib.owner, w->address_port);
  for (auto& m : w->inbox) {
    if (m->kind == message_kind::connect) fabric::of(lib.the_world()).close(m->where, side::server);
  }
  w->inbox.clear();
  if (w->efd >= 0) lib.owner.close_descriptor(w->efd);
  --w->owner.workers;
  std::erase(lib.workers, w);
  lib.retire(*w);
  lib.the_world().log(&lib.owner, hardware_event::driver_worker_destroyed, w->number, dropped);
}

// Requests ----------------------------------------------------------------------------------------------------

void ucp_request_free(void* handle) {
  call c(function::ucp_request_free, handle);
  auto* const r = c.find<request>(handle, object_kind::request);
  if (r == nullptr || !c.on_thread_of(*r->through)) return;
  if (r->status == UCS_INPROGRESS) {
    // Legal, and takes the callback away. For a transfer that would be the end of knowing when its bytes are quiet.
    if (r->what != request_kind::close || r->released) {
      c.lib().misuse("request in use", "request " + std::to_string(r->number) + " was freed before it ended");
      return;
    }
    r->released = true;
    r->callback = nullptr;
    return;
  }
  --r->through->unfreed;
  c.lib().retire(*r);
}

ucs_status_t ucp_request_check_status(void* handle) {
  call c(function::ucp_request_check_status, handle);
  auto* const r = c.find<request>(handle, object_kind::request);
  return r == nullptr || !c.on_thread_of(*r->through, true) ? UCS_ERR_INVALID_PARAM : r->status;
}

}  // namespace holdfast::sim::ucp_double
