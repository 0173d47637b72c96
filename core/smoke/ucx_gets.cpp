#include <holdfast/platform/abi.hpp>

#include "smoke/ucx_stage.hpp"

#include <algorithm>

namespace holdfast::smoke {

namespace {

/// Places in what a peer serves; any sequence that is the same in each run.
class places {
 public:
  std::uint64_t below(std::uint64_t end) noexcept {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return end == 0 ? 0 : (state_ >> 33) % end;
  }

 private:
  std::uint64_t state_ = 1;
};

/// 64 B, then sixteen times as much each, and the largest that was asked for.
std::vector<std::uint64_t> sizes_up_to(std::uint64_t largest) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 64; bytes < largest; bytes *= 16) sizes.push_back(bytes);
  sizes.push_back(largest);
  return sizes;
}

// Waits for it and looks at every byte. Empty: fine; the buffer is back in `into`.
std::string settle(pending_get& get, pinned::buffer& into) {
  if (!get.wait(patience)) return "a GET did not end within " + std::to_string(patience.count()) + " s";
  if (const auto why = get.failure()) return sentence(*why);
  std::string wrong = get.wrong_bytes();
  into = get.take_buffer();
  return wrong;
}

bool check_one_size(ucx_stage& stage, std::uint64_t bytes, std::chrono::nanoseconds share) {
  const std::string name = "get " + bytes_text(bytes);
  constexpr std::size_t least = 3;
  auto got = stage.own->alloc(bytes);
  if (!got) return stage.failed(name, got.error()), false;
  pinned::buffer buffer = std::move(*got);
  places where;
  std::vector<std::int64_t> times;
  const steady::time_point until = steady::now() + share;
  // The first to each peer unpacks its key, and is not measured.
  const std::size_t warm = stage.peers.size();
  for (std::size_t i = 0; i < warm + least || steady::now() < until; ++i) {
    const peer_process& peer = *stage.peers[i % stage.peers.size()];
    pending_get get(*stage.own, peer, where.below(stage.with.given.bytes - bytes + 1), bytes, std::move(buffer));
    if (const std::string wrong = settle(get, buffer); !wrong.empty()) return stage.failed(name, wrong), false;
    if (i >= warm) times.push_back(get.took_ns());
  }
  std::ranges::sort(times);
  const std::int64_t median = times[times.size() / 2];
  stage.ok(name, "median " + time_text(median) + ", " + rate_text(bytes, median) + "; " + std::to_string(times.size()) +
                     " GETs, every byte checked");
  return true;
}

bool check_many(ucx_stage& stage, std::chrono::nanoseconds share) {
  constexpr std::string_view name = "gets at once";
  constexpr std::size_t for_each_peer = 4;
  const std::uint64_t largest = std::min<std::uint64_t>(stage.with.given.bytes, std::uint64_t{1} << 20);
  std::vector<pinned::buffer> buffers;
  for (std::size_t i = 0; i < stage.peers.size() * for_each_peer; ++i) {
    auto got = stage.own->alloc(largest);
    if (!got) return stage.failed(name, got.error()), false;
    buffers.push_back(std::move(*got));
  }
  places where;
  std::uint64_t total_bytes = 0, total = 0;
  std::int64_t total_ns = 0;
  const steady::time_point until = steady::now() + share;
  do {
    std::vector<std::unique_ptr<pending_get>> going;
    const steady::time_point began = steady::now();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::uint64_t bytes = largest - where.below(largest);
      const std::uint64_t offset = where.below(stage.with.given.bytes - bytes + 1);
      going.push_back(std::make_unique<pending_get>(*stage.own, *stage.peers[i % stage.peers.size()], offset, bytes,
                                                    std::move(buffers[i])));
      total_bytes += bytes;
    }
    steady::time_point last = began;
    for (std::size_t i = 0; i < going.size(); ++i) {
      if (const std::string wrong = settle(*going[i], buffers[i]); !wrong.empty())
        return stage.failed(name, wrong), false;
      last = std::max(last, going[i]->ended_at());
    }
    total_ns += (last - began).count();
    total += going.size();
  } while (steady::now() < until);
  stage.ok(name, rate_text(total_bytes, total_ns) + " from " + count_text(stage.peers.size(), "peer") + ", " +
                     std::to_string(buffers.size()) + " at a time; " + std::to_string(total) +
                     " GETs, every byte checked");
  return true;
}

}  // namespace

void check_gets(ucx_stage& stage) {
  const auto& net = stage.own->peers();
  if (!net.get_works()) return stage.failed("get", sentence(net.get_absent_because()));
  const std::vector<std::uint64_t> sizes = sizes_up_to(stage.with.given.bytes);
  const auto share = stage.with.given.seconds / static_cast<std::int64_t>(sizes.size() + 1);
  for (const std::uint64_t bytes : sizes)
    if (!check_one_size(stage, bytes, share)) return;
  check_many(stage, share);
}

}  // namespace holdfast::smoke
