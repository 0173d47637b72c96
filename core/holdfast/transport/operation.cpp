#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/stop_process.hpp>
#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/operation.hpp>

#include <atomic>

namespace holdfast::inline HOLDFAST_ABI::transport {

void operation::called_back(int status) noexcept {
  // The library may call back inside the posting call. Then the poster, who comes second, ends the record: it still
  // has to look at it. The status is written first, because the poster reads it as soon as it sees the phase.
  early_status_ = status;
  phase expected = phase::posting;
  if (phase_.compare_exchange_strong(expected, phase::called, std::memory_order_acq_rel)) return;
  expected = phase::posted;
  if (!phase_.compare_exchange_strong(expected, phase::ended, std::memory_order_acq_rel))
    platform::stop_process("transport: the library called back for an operation that had ended");
  table_->leave(*this, operation_exit::callback, status);
}

result<void> operation_table::admit(operation& record, operation_kind kind, const peer_id& peer,
                                    std::size_t bytes) noexcept {
  scoped_lock lock(mutex_);
  if (kind == operation_kind::get) {
    if (closed_) return fail(error_code::shutting_down, "transport.submit");
    if (transfers_ >= capacity_) return fail(error_code::busy, "transport.submit", 0, capacity_);
    ++transfers_;
  }
  record.table_ = this;
  record.kind_ = kind;
  record.id_ = ++last_id_;
  record.phase_.store(operation::phase::queued, std::memory_order_relaxed);
  record.previous_ = last_;
  record.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &record;
  last_ = &record;
  ++records_;
  emit::operation_accepted(log_, record.id_, peer.worker_id, peer.incarnation, bytes, static_cast<std::uint64_t>(kind));
  return {};
}

void operation_table::close() noexcept {
  scoped_lock lock(mutex_);
  closed_ = true;
}

void operation_table::begin_post(operation& record, std::uint64_t connection) noexcept {
  record.phase_.store(operation::phase::posting, std::memory_order_release);
  emit::operation_submitted(log_, record.id_, connection);
}

void operation_table::settle_post(operation& record, const posted& answer) noexcept {
  if (answer.exit == post_exit::posted) {
    {
      scoped_lock lock(mutex_);
      ++posted_;
      emit::operation_posted(log_, record.id_);
    }
    auto expected = operation::phase::posting;
    if (record.phase_.compare_exchange_strong(expected, operation::phase::posted, std::memory_order_acq_rel)) return;
    record.phase_.store(operation::phase::ended, std::memory_order_release);
    leave(record, operation_exit::callback, record.early_status_);
    return;
  }
  record.phase_.store(operation::phase::ended, std::memory_order_release);
  leave(record, answer.exit == post_exit::inline_done ? operation_exit::inline_done : operation_exit::error,
        answer.status);
}

void operation_table::drop(operation& record, operation_exit why) noexcept {
  record.phase_.store(operation::phase::ended, std::memory_order_release);
  leave(record, why, 0);
}

void operation_table::orphan(operation& record, std::uint64_t connection, std::size_t bytes) noexcept {
  scoped_lock lock(mutex_);
  record.orphan_ = true;
  ++orphaned_;
  emit::operation_orphaned(log_, record.id_, connection, bytes);
}

void operation_table::retract(operation& record) noexcept {
  scoped_lock lock(mutex_);
  unlink(record);
  record.phase_.store(operation::phase::ended, std::memory_order_relaxed);
  emit::operation_ended(log_, record.id_, static_cast<std::uint64_t>(operation_exit::refused), std::uint64_t{0});
}

void operation_table::leave(operation& record, operation_exit exit, int status) noexcept {
  {
    scoped_lock lock(mutex_);
    unlink(record);
    if (exit == operation_exit::callback) --posted_;
    if (record.kind_ == operation_kind::get) exits_seen_ |= 1u << static_cast<unsigned>(exit);
    emit::operation_ended(log_, record.id_, static_cast<std::uint64_t>(exit),
                          static_cast<std::uint64_t>(static_cast<std::int64_t>(status)));
  }
  record.exited(exit, status);
}

void operation_table::unlink(operation& record) noexcept {
  (record.previous_ != nullptr ? record.previous_->next_ : first_) = record.next_;
  (record.next_ != nullptr ? record.next_->previous_ : last_) = record.previous_;
  record.previous_ = record.next_ = nullptr;
  if (record.kind_ == operation_kind::get) --transfers_;
  if (record.orphan_) --orphaned_;
  record.orphan_ = false;
  --records_;
  ++ended_;
}

std::uint64_t operation_table::sweep() noexcept {
  std::uint64_t swept = 0;
  for (;;) {
    operation* record = nullptr;
    {
      scoped_lock lock(mutex_);
      record = first_;
      // A queued one is in its submitter's hands: the queue is closed, so he is refused and takes it back.
      while (record != nullptr && record->phase_.load(std::memory_order_acquire) == operation::phase::queued)
        record = record->next_;
      if (record == nullptr) return swept;
      unlink(*record);
      if (record->phase_.exchange(operation::phase::ended, std::memory_order_acq_rel) == operation::phase::posted)
        --posted_;
      ++swept_;
      emit::operation_ended(log_, record->id_, static_cast<std::uint64_t>(operation_exit::swept), std::uint64_t{0});
    }
    ++swept;
    record->exited(operation_exit::swept, 0);
  }
}

void operation_table::tell_unknown() noexcept {
  fate_listener* waiting = nullptr;
  {
    scoped_lock lock(mutex_);
    for (const operation* record = last_; record != nullptr; record = record->previous_)
      if (fate_listener* const one = record->listener().detach()) {
        one->next_told = waiting;
        waiting = one;
      }
  }
  while (waiting != nullptr) {
    const intrusive_ptr<fate_listener> told(waiting, adopt_share);
    waiting = told->next_told;
    told->fate_unknown();
  }
}

bool operation_table::saw(operation_exit exit) const noexcept {
  scoped_lock lock(mutex_);
  return (exits_seen_ & 1u << static_cast<unsigned>(exit)) != 0;
}

std::uint64_t operation_table::outstanding() const noexcept {
  scoped_lock lock(mutex_);
  return records_;
}

operation_counts operation_table::counts() const noexcept {
  scoped_lock lock(mutex_);
  return {records_ - posted_, posted_, ended_, swept_, orphaned_};
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
