#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/connection.hpp>
#include <holdfast/transport/directory.hpp>

#include <algorithm>
#include <new>

namespace holdfast::inline HOLDFAST_ABI::transport {

connection_directory::connection_directory(event_log& log, std::size_t connections_max) : log_(log) {
  ready_.reserve(connections_max);
}

std::size_t connection_directory::position(const peer_id& peer) const noexcept {
  const auto at = std::lower_bound(ready_.begin(), ready_.end(), peer,
                                   [](const entry& have, const peer_id& wanted) { return have.peer < wanted; });
  return static_cast<std::size_t>(at - ready_.begin());
}

void connection_directory::put(connection& which, connection_state state) noexcept {
  const std::size_t at = position(which.peer);
  const bool listed = at < ready_.size() && ready_[at].which == &which;
  if (state == connection_state::ready && !listed)
    ready_.insert(ready_.begin() + static_cast<std::ptrdiff_t>(at), entry{which.peer, &which});
  else if (state != connection_state::ready && listed)
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
  which.state = state;
  ++counts_[static_cast<std::size_t>(state)];
  emit::connection_state(log_, which.number, which.peer.worker_id, which.peer.incarnation,
                         static_cast<std::uint64_t>(state));
}

void connection_directory::add(connection& which, connection_state state) noexcept {
  scoped_lock lock(mutex_);
  put(which, state);
}

void connection_directory::move(connection& which, connection_state state) noexcept {
  scoped_lock lock(mutex_);
  --counts_[static_cast<std::size_t>(which.state)];
  put(which, state);
}

void connection_directory::supersede(connection& older, connection& newer) noexcept {
  scoped_lock lock(mutex_);
  --counts_[static_cast<std::size_t>(older.state)];
  --counts_[static_cast<std::size_t>(newer.state)];
  put(older, connection_state::draining);
  put(newer, connection_state::ready);
}

void connection_directory::forget(connection& which) noexcept {
  scoped_lock lock(mutex_);
  --counts_[static_cast<std::size_t>(which.state)];
}

connection* connection_directory::find(const peer_id& peer) const noexcept {
  scoped_lock lock(mutex_);
  const std::size_t at = position(peer);
  return at < ready_.size() && ready_[at].peer == peer ? ready_[at].which : nullptr;
}

peer_presence connection_directory::presence(const peer_id& peer) const noexcept {
  scoped_lock lock(mutex_);
  const std::size_t at = position(peer);
  if (at < ready_.size() && ready_[at].peer == peer) return peer_presence::ready;
  const bool after = at < ready_.size() && ready_[at].peer.worker_id == peer.worker_id;
  const bool before = at > 0 && ready_[at - 1].peer.worker_id == peer.worker_id;
  return after || before ? peer_presence::another_life : peer_presence::absent;
}

std::array<std::uint64_t, connection_states> connection_directory::counts() const noexcept {
  scoped_lock lock(mutex_);
  return counts_;
}

std::vector<incarnation_history::name>::iterator incarnation_history::seek(std::uint64_t worker_id) noexcept {
  return std::find_if(names_.begin(), names_.end(), [worker_id](const name& n) { return n.worker_id == worker_id; });
}

const incarnation_history::name* incarnation_history::find(std::uint64_t worker_id) const noexcept {
  for (const name& n : names_)
    if (n.worker_id == worker_id) return &n;
  return nullptr;
}

incarnation_history::verdict incarnation_history::judge(const peer_id& peer) const noexcept {
  const name* const known = find(peer.worker_id);
  if (known == nullptr) return verdict::first;
  if (known->current == peer.incarnation) return verdict::same;
  return std::find(known->old.begin(), known->old.end(), peer.incarnation) == known->old.end() ? verdict::newer
                                                                                               : verdict::old;
}

std::uint64_t incarnation_history::current(std::uint64_t worker_id) const noexcept {
  const name* const known = find(worker_id);
  return known == nullptr ? 0 : known->current;
}

bool incarnation_history::bury(const peer_id& peer) noexcept {
  if (judge(peer) == verdict::old) return true;
  const std::uint64_t lives = current(peer.worker_id);
  if (!accept(peer)) return false;
  auto known = seek(peer.worker_id);
  try {
    known->old.push_back(peer.incarnation);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (known->old.size() > remembered_max) known->old.erase(known->old.begin());
  // Nobody lives under that name now, unless another life was heard of meanwhile.
  known->current = 0;
  if (lives != 0 && lives != peer.incarnation) {
    std::erase(known->old, lives);
    known->current = lives;
  }
  return true;
}

bool incarnation_history::accept(const peer_id& peer) noexcept {
  try {
    auto known = seek(peer.worker_id);
    if (known == names_.end()) {
      names_.push_back({peer.worker_id, peer.incarnation, {}});
      if (names_.size() > names_max_) names_.erase(names_.begin());
      return true;
    }
    if (known->current != peer.incarnation) {
      if (known->current != 0) known->old.push_back(known->current);
      if (known->old.size() > remembered_max) known->old.erase(known->old.begin());
      known->current = peer.incarnation;
    }
    std::rotate(known, known + 1, names_.end());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
