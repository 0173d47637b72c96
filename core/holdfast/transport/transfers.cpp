// The part of `connection_set` that moves bytes: keys, submission of transfers, and their ends.
#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/connections.hpp>

#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

enum class key_step : std::uint8_t { unpacked, condemned, destroyed };

void tell(event_log& log, const connection& c, const cached_key& key, key_step step) noexcept {
  emit::key_state(log, key.id, c.number, key.generation, static_cast<std::uint64_t>(step));
}

}  // namespace

void transfer::execute() noexcept { connections_->submit(*this); }

void transfer::refuse() noexcept {
  why_ = fail(error_code::shutting_down, "transport.get", id()).error();
  connections_->table_.drop(*this, operation_exit::withdrawn);
}

void transfer::exited(operation_exit exit, int status) noexcept { connections_->transfer_exited(*this, exit, status); }

void connection_set::submit(transfer& what) noexcept {
  if (!what.wanted()) {
    what.why_ = fail(error_code::cancelled, "transport.get", what.id()).error();
    return table_.drop(what, operation_exit::withdrawn);
  }
  connection* const c = closing_ ? nullptr : directory_.find(what.peer);
  data_endpoint* const data = c != nullptr && !what.control_only_ ? c->data : nullptr;
  if (c == nullptr || c->endpoint_is != endpoint_state::open || (data != nullptr && data->is != endpoint_state::open)) {
    // The caller's own check found a ready connection; it was lost on the way here.
    refuse_lost(what);
  } else if (data == nullptr && (c->turn != nullptr || c->waiting_first != nullptr)) {
    wait_for_turn(what, *c);
  } else {
    hand_over(what, *c, data);
  }
}

void connection_set::refuse_lost(transfer& what) noexcept {
  what.why_ =
      closing_
          ? fail(error_code::shutting_down, "transport.get", what.id()).error()
          : fail(error_code::peer_lost, "transport.get", what.id(), what.peer.worker_id, what.peer.incarnation).error();
  table_.drop(what, closing_ ? operation_exit::withdrawn : operation_exit::refused);
}

void connection_set::hand_over(transfer& what, connection& c, data_endpoint* data) noexcept {
  const wire_endpoint via = data != nullptr ? data->handle : c.endpoint;
  const auto key = key_for(c, what, via);
  if (!key) {
    what.why_ = key.error();
    return table_.drop(what, operation_exit::refused);
  }
  what.connection_ = &c;
  what.cached_key_ = *key;
  ++c.outstanding;
  watch_silence(c);
  if (data != nullptr) {
    what.data_ = data;
    what.previous_posted_ = data->last;
    (data->last != nullptr ? data->last->next_posted_ : data->first) = &what;
    data->last = &what;
  } else if (wire_.facts().gets_take_turns) {
    c.turn = &what;
  }
  ++(*key)->uses;
  emit::key_used(log_, (*key)->id, what.id());
  table_.begin_post(what, c.number);
  const posted answer =
      wire_.get(via, what.destination, what.bytes, what.remote_address, (*key)->handle, what.region_handle_, what);
  table_.settle_post(what, answer);
}

// ---- turns ----------------------------------------------------------------------------------------------------------

void connection_set::wait_for_turn(transfer& what, connection& c) noexcept {
  what.next_posted_ = nullptr;
  (c.waiting_last != nullptr ? c.waiting_last->next_posted_ : c.waiting_first) = &what;
  c.waiting_last = &what;
  emit::operation_waits(log_, what.id(), c.number);
}

void connection_set::give_turns(connection& c) noexcept {
  while (c.turn == nullptr && c.waiting_first != nullptr && c.endpoint_is == endpoint_state::open) {
    transfer& next = *c.waiting_first;
    c.waiting_first = std::exchange(next.next_posted_, nullptr);
    if (c.waiting_first == nullptr) c.waiting_last = nullptr;
    if (next.wanted()) {
      hand_over(next, c, nullptr);
    } else {
      next.why_ = fail(error_code::cancelled, "transport.get", next.id()).error();
      table_.drop(next, operation_exit::withdrawn);
    }
  }
}

void connection_set::refuse_waiting(connection& c) noexcept {
  while (transfer* const next = c.waiting_first) {
    c.waiting_first = std::exchange(next->next_posted_, nullptr);
    refuse_lost(*next);
  }
  c.waiting_last = nullptr;
}

void connection_set::transfer_exited(transfer& what, operation_exit exit, int status) noexcept {
  error why = what.why_;
  if (connection* const c = what.connection_) {
    --c->outstanding;
    if (what.orphaned_) --c->orphaned;
    if (c->turn == &what) {
      c->turn = nullptr;
      if (c->waiting_first != nullptr) mark_dirty(*c);
    }
    if (data_endpoint* const data = what.data_) {
      (what.previous_posted_ != nullptr ? what.previous_posted_->next_posted_ : data->first) = what.next_posted_;
      (what.next_posted_ != nullptr ? what.next_posted_->previous_posted_ : data->last) = what.previous_posted_;
    }
    cached_key& key = *what.cached_key_;
    --key.uses;
    c->heard = c->heard || status == 0;
    if (status == 0) c->suspect_told = false;
    // Which failure means that the key was refused differs from lane to lane, so any does: the next transfer unpacks anew.
    if (status != 0 && !key.condemned && c->state == connection_state::ready && !c->endpoint_failed) {
      key.condemned = true;
      tell(log_, *c, key, key_step::condemned);
      mark_dirty(*c);
    }
    if (key.condemned && key.uses == 0) c->keys_to_destroy = true;
    if (c->state != connection_state::ready) mark_dirty(*c);
    if (status != 0)
      why = c->endpoint_failed
                ? peer_error(*c, status)
                : fail_with_words(error_code::transfer_failed, "transport.get", wire_.words(status), what.id(),
                                  static_cast<std::uint64_t>(static_cast<std::int64_t>(status)))
                      .error();
  }
  transfer_outcome outcome = transfer_outcome::failed;
  switch (exit) {
    case operation_exit::inline_done:
    case operation_exit::callback: outcome = status == 0 ? transfer_outcome::ok : transfer_outcome::failed; break;
    case operation_exit::error: outcome = transfer_outcome::failed; break;
    case operation_exit::refused:
    case operation_exit::withdrawn: outcome = transfer_outcome::never_started; break;
    case operation_exit::swept:
      // One that was still queued was never handed over; the queue is emptied before the sweep, so there is none.
      outcome = transfer_outcome::indeterminate;
      why = fail(error_code::indeterminate, "transport.get", what.id()).error();
      break;
  }
  what.ended(outcome, why);
}

// ---- keys -----------------------------------------------------------------------------------------------------------

result<cached_key*> connection_set::key_for(connection& c, const transfer& what, wire_endpoint via) noexcept {
  for (cached_key* key = c.keys; key != nullptr; key = key->next)
    if (!key->condemned && key->via == via && key->generation == what.generation &&
        key->incarnation == what.incarnation && key->bytes == what.key)
      return key;
  if (c.key_count >= settings_.max_keys) {
    cached_key* oldest_idle = nullptr;
    for (cached_key* key = c.keys; key != nullptr; key = key->next)
      if (key->uses == 0) oldest_idle = key;
    if (oldest_idle == nullptr) return fail(error_code::busy, "transport.key", what.id(), settings_.max_keys);
    destroy_key(c, *oldest_idle);
  }
  if (platform::heap_fault("transport.key"))
    return fail(error_code::out_of_memory, "transport.key", what.id(), sizeof(cached_key));
  auto* const made = new (std::nothrow) cached_key;
  if (made == nullptr) return fail(error_code::out_of_memory, "transport.key", what.id(), sizeof(cached_key));
  const auto handle = wire_.unpack_key(via, what.key);
  if (!handle) {
    delete made;
    error told = handle.error();
    told.code = error_code::bad_key;
    told.operation = "transport.key";
    told.identity = what.id();
    told.numbers[0] = what.key.bytes().size();
    return std::unexpected(told);
  }
  made->id = ++last_key_;
  made->generation = what.generation;
  made->incarnation = what.incarnation;
  made->bytes = what.key;
  made->handle = *handle;
  made->via = via;
  made->next = c.keys;
  c.keys = made;
  ++c.key_count;
  keys_.fetch_add(1, std::memory_order_relaxed);
  tell(log_, c, *made, key_step::unpacked);
  return made;
}

void connection_set::destroy_key(connection& c, cached_key& key) noexcept {
  cached_key** link = &c.keys;
  while (*link != &key) link = &(*link)->next;
  *link = key.next;
  --c.key_count;
  keys_.fetch_sub(1, std::memory_order_relaxed);
  // Told before the library is called: a key that goes too early is then named as such.
  tell(log_, c, key, key_step::destroyed);
  wire_.destroy_key(key.handle);
  delete &key;
}

void connection_set::condemn_keys(connection& c) noexcept {
  for (cached_key* key = c.keys; key != nullptr; key = key->next) {
    if (key->condemned) continue;
    key->condemned = true;
    tell(log_, c, *key, key_step::condemned);
  }
  // Idle keys go before their endpoint; the others when their last operation ended.
  destroy_condemned(c);
}

void connection_set::destroy_condemned(connection& c) noexcept {
  c.keys_to_destroy = false;
  for (cached_key* key = c.keys; key != nullptr;) {
    cached_key* const next = key->next;
    if (key->condemned && key->uses == 0) destroy_key(c, *key);
    key = next;
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
