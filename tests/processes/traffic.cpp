#include <holdfast/platform/abi.hpp>

#include <tests/processes/traffic.hpp>

#include <smoke/pattern.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::testing::processes {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t guards_wanted = 48;
constexpr std::uint64_t tail_max = 4096;
/// For what no peer has a part in.
constexpr auto patience = 60s;

}  // namespace

awake_clock::duration awake_clock::now() noexcept {
  const auto at = std::chrono::steady_clock::now();
  total_ += std::min<duration>(at - std::exchange(last_, at), 50ms);
  return total_;
}

std::string traffic_counts::text() const {
  return "fetched=" + std::to_string(fetched) + " failed=" + std::to_string(failed) +
         " cancelled=" + std::to_string(cancelled) + " unknown=" + std::to_string(unknown) +
         " refused=" + std::to_string(refused) + " bytes=" + std::to_string(bytes) +
         " connects=" + std::to_string(connects);
}

traffic::traffic(runtime& core, const traffic_rules& rules, complaint wrong)
    : core_(core), rules_(rules), wrong_(std::move(wrong)), random_(rules.seed) {}

std::optional<pinned::buffer> traffic::allocate(std::uint64_t bytes) {
  smoke::awaited<result<pinned::buffer>> told;
  core_.pinned().async_alloc(bytes, told.handler());
  if (!told.wait(patience)) {
    wrong_("an allocation was not answered within 60 s");
    return std::nullopt;
  }
  if (!told.answer()) {
    // What is held for fetches of unknown fate takes its share of the budget.
    if (told.answer().error().code != error_code::budget_exceeded) wrong_(told.answer().error().text());
    return std::nullopt;
  }
  return std::move(*told.answer());
}

std::optional<smoke::offer> traffic::serve(std::uint64_t bytes, std::uint64_t seed) {
  auto memory = allocate(bytes);
  if (!memory) return std::nullopt;
  served_ = {std::move(*memory), seed};
  smoke::write_pattern(served_.memory.bytes(), seed);
  // The progress thread reads these bytes for whoever asks. It takes the directory's lock when somebody connects; so
  // does this, and the bytes are there for it.
  static_cast<void>(core_.peers()->snapshot());
  const auto reference = served_.memory.remote();
  if (!reference) {
    wrong_("no reference to memory that was just allocated");
    return std::nullopt;
  }
  return smoke::offer{std::string(core_.peers()->listen_address()), core_.peers()->self(), *reference};
}

void traffic::know(std::size_t at, neighbor whom) {
  if (places_[at].whom) mourn(at);
  places_[at].whom = std::move(whom);
  places_[at].mourned = false;
  places_[at].next_try = now_;
}

void traffic::mourn(std::size_t at) {
  place& one = places_[at];
  if (!one.whom || std::exchange(one.mourned, true)) return;
  one.mourned_at = clock_.now();
  for (pending& get : pending_)
    if (get.who == one.whom->offered.who && !get.peer_gone_at) get.peer_gone_at = one.mourned_at;
}

bool traffic::calm() const noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].whom && !calm_[i]) return false;
  return true;
}

std::uint64_t traffic::some_size() {
  switch (below(8)) {
    case 0: return 1 + below(64);
    case 1: return rules_.bytes_max - below(100);
    case 2:
    case 3: return 1 + below(rules_.bytes_max);
    default: return 1 + below(16 << 10);
  }
}

void traffic::connect(place& one) {
  if (one.connecting) {
    if (one.connecting->came()) {
      const auto& answer = one.connecting->answer();
      ++counts_.connects;
      one.next_try = now_ + (answer ? 20ms : 100ms);
      one.connecting.reset();
    } else if (now_ - one.asked_at > rules_.connect_timeout + rules_.bound) {
      wrong_("a connection attempt was not answered by its bound");
      one.asked_at = now_;
    }
    return;
  }
  if (!one.whom || one.mourned || now_ < one.next_try || core_.peers()->is_ready(one.whom->offered.who)) return;
  one.asked_at = now_;
  one.connecting.emplace();
  core_.peers()->async_connect(one.whom->offered.address, one.whom->offered.who, one.connecting->handler());
}

bool traffic::begin(std::size_t from, std::uint64_t offset, std::uint64_t bytes,
                    std::function<void(const result<void>&)> told) {
  const neighbor& whom = *places_[from].whom;
  auto memory = allocate(bytes + 1 + below(tail_max));
  if (!memory) return false;
  pending& one = pending_.emplace_back();
  one.from = from;
  one.who = whom.offered.who;
  one.seed = whom.seed;
  one.offset = offset;
  one.bytes = bytes;
  one.tail_seed = ++last_seed_;
  one.told = std::move(told);
  if (places_[from].mourned) one.peer_gone_at = now_;
  if (!one.told && below(16) == 0) one.cancel_at = now_ + std::chrono::microseconds(below(20'000));
  smoke::write_complement(memory->bytes().first(bytes), one.seed, offset);
  smoke::write_pattern(memory->bytes().subspan(bytes), one.tail_seed);
  remote_reference source = whom.offered.memory;
  source.address += offset;
  source.length = bytes;
  core_.pinned().async_get(one.who, source, std::move(*memory), one.answer.handler());
  return true;
}

void traffic::fetch(std::size_t from, std::uint64_t bytes, std::function<void(const result<void>&)> told) {
  if (!places_[from].whom || !begin(from, 0, bytes, std::move(told))) wrong_("a fetch could not begin");
}

std::size_t traffic::cancel_all() {
  for (pending& one : pending_) {
    one.answer.cancel();
    one.cancelled = true;
  }
  return pending_.size();
}

void traffic::settle(pending& one) {
  auto& answer = one.answer.answer();
  const auto tell = [&one](const result<void>& outcome) {
    if (one.told) one.told(outcome);
  };
  if (!answer) {
    const error& why = answer.error();
    if (why.code == error_code::cancelled && one.cancelled)
      ++counts_.cancelled;
    else if (why.code == error_code::indeterminate)
      ++counts_.unknown;
    else
      wrong_("a fetch kept its buffer: " + why.text());
    return tell(std::unexpected(why));
  }
  pinned::buffer& memory = answer->destination;
  if (!memory) {
    wrong_("an answer without its buffer");
    return tell(answer->outcome);
  }
  const std::span<const std::byte> bytes = memory.bytes();
  if (smoke::first_wrong(bytes.subspan(one.bytes), one.tail_seed))
    wrong_("a byte behind the end of a fetch of " + std::to_string(one.bytes) + " bytes changed");
  if (answer->outcome) {
    ++counts_.fetched;
    counts_.bytes += one.bytes;
    calm_[one.from] = places_[one.from].whom && places_[one.from].whom->offered.who == one.who ? true : calm_[one.from];
    if (const auto wrong = smoke::first_wrong(bytes.first(one.bytes), one.seed, one.offset))
      wrong_("byte " + std::to_string(*wrong) + " of a fetch of " + std::to_string(one.bytes) + " is not its owner's");
    return tell(answer->outcome);
  }
  const error& why = answer->outcome.error();
  switch (why.code) {
    case error_code::transfer_failed:
    case error_code::peer_lost: ++counts_.failed; break;
    case error_code::unreachable:
    case error_code::stale_key:
    case error_code::busy:
    case error_code::shutting_down: {
      ++counts_.refused;
      // It was never submitted: nobody wrote.
      std::vector<std::byte> before(one.bytes);
      smoke::write_complement(before, one.seed, one.offset);
      if (!std::ranges::equal(before, bytes.first(one.bytes)))
        wrong_("a fetch that was never submitted changed its destination");
      break;
    }
    default: wrong_("a fetch ended with something else: " + why.text());
  }
  tell(answer->outcome);
}

void traffic::look_at(const guard& one) {
  if (!one.memory) return;
  const auto bytes = one.memory.bytes();
  if (const auto wrong = smoke::first_wrong(bytes, one.seed))
    wrong_("byte " + std::to_string(*wrong) + " of a buffer of " + std::to_string(bytes.size()) +
           " that nobody fetched into changed");
}

// One guard is looked at and given to another place.
void traffic::churn() {
  const bool more = guards_.size() < guards_wanted;
  if (!more && below(4) != 0) return;
  guard& one = more ? guards_.emplace_back() : guards_[below(guards_.size())];
  look_at(one);
  one.memory.reset();
  auto memory = allocate(1 + below(below(4) == 0 ? 64 << 10 : 6 << 10));
  if (!memory) return;
  one = {std::move(*memory), ++last_seed_};
  smoke::write_pattern(one.memory.bytes(), one.seed);
}

void traffic::look_at_everything() {
  for (const guard& one : guards_) look_at(one);
  look_at(served_);
}

void traffic::drop_buffers() {
  look_at_everything();
  guards_.clear();
  served_.memory.reset();
}

void traffic::step() {
  now_ = clock_.now();
  for (place& one : places_) connect(one);
  for (auto at = pending_.begin(); at != pending_.end();) {
    if (at->answer.came()) {
      settle(*at);
      at = pending_.erase(at);
      continue;
    }
    if (at->cancel_at && now_ >= *at->cancel_at && !at->cancelled) {
      at->answer.cancel();
      at->cancelled = true;
    }
    if (at->peer_gone_at && now_ - *at->peer_gone_at > rules_.bound && !std::exchange(at->complained, true))
      wrong_("a fetch is pending " + std::to_string(rules_.bound / 1ms) + " ms after its owner's process was gone");
    ++at;
  }
  if (!on_) return;
  churn();
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const place& one = places_[i];
    // One that is not connected is refused at once, and asked now and then.
    if (one.whom && (core_.peers()->is_ready(one.whom->offered.who) || below(64) == 0)) known.push_back(i);
  }
  // What stands still must not keep the others from being served.
  for (const std::size_t from : known) {
    const auto going = std::ranges::count_if(pending_, [from](const pending& one) { return one.from == from; });
    for (std::size_t i = static_cast<std::size_t>(going); i < rules_.at_once; ++i) {
      const std::uint64_t length = places_[from].whom->offered.memory.length;
      const std::uint64_t bytes = std::min(some_size(), length);
      if (!begin(from, below(length - bytes + 1), bytes)) return;
    }
  }
}

}  // namespace holdfast::testing::processes
