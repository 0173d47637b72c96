// P8: how full one arena of 64 MiB is when it refuses for the first time: (a) sizes one granule above a power of two, which
// allocators with bins round up; (b) the mixed sizes of P2; (c) a churn of those sizes that grows until it is refused.
// Bytes are granules, as they are charged; figures are averages and the worst of 200 sequences each.
#include <tests/bench/bench_pool.hpp>

#include <cstring>

namespace {

using namespace holdfast;
constexpr std::uint64_t arena_bytes = std::uint64_t{64} << 20;
constexpr int sequences = 200;

std::uint64_t granules(std::uint64_t bytes) { return (bytes + pinned::granule_bytes - 1) / pinned::granule_bytes; }

struct ratios {
  double average = 0, worst = 1;
};

/// `next_bytes` draws a size; of a hundred steps `frees` give a random buffer back instead.
template <class Draw>
ratios measure(bench::pool& pool, Draw next_bytes, unsigned frees) {
  ratios all;
  for (int sequence = 1; sequence <= sequences; ++sequence) {
    bench::random draw(static_cast<std::uint64_t>(sequence));
    std::vector<pinned::buffer> held;
    std::uint64_t used = 0;
    for (;;) {
      if (draw.below(100) < frees && !held.empty()) {
        const std::size_t victim = static_cast<std::size_t>(draw.below(held.size()));
        used -= granules(held[victim].size());
        std::swap(held[victim], held.back());
        held.pop_back();
        continue;
      }
      const std::uint64_t bytes = next_bytes(draw);
      auto got = pool.memory().try_alloc(bytes);
      if (!got) break;
      used += granules(bytes);
      held.push_back(std::move(*got));
    }
    const double ratio = static_cast<double>(used * pinned::granule_bytes) / static_cast<double>(arena_bytes);
    all.average += ratio / sequences;
    all.worst = std::min(all.worst, ratio);
  }
  return all;
}

nlohmann::json row(const char* id, const ratios& got, double goal) {
  return {{"id", id},
          {"ours", got.average},
          {"unit", "of the arena"},
          {"others", nlohmann::json::object()},
          {"ratio_to_best", nullptr},
          {"worst", got.worst},
          {"goal", goal},
          {"met", got.average >= goal && got.worst >= 0.70}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && std::strcmp(argv[1], "--json") != 0)) {
    std::fputs("usage: real_p8_fill_ratio [--json]\n", stderr);
    return 2;
  }
  bench::pool pool(pinned::settings{});
  pool.must_alloc(1).reset();
  const auto unlucky = [](bench::random& draw) {
    return ((std::uint64_t{1} << draw.below(9)) + 1) * pinned::granule_bytes;
  };
  nlohmann::json rows = nlohmann::json::array();
  rows.push_back(row("P8 (a) unlucky sizes", measure(pool, unlucky, 0), 0.97));
  rows.push_back(row("P8 (b) mixed sizes", measure(pool, bench::churn_bytes, 0), 0.88));
  rows.push_back(row("P8 (c) churn", measure(pool, bench::churn_bytes, 45), 0.88));
  return bench::print(rows, argc == 2);
}
