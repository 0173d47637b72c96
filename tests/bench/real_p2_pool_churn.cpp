// P2: 1,024 live buffers of mixed sizes; each step replaces a random one. Against malloc and free of the C library, which
// register nothing. Both sides run interleaved in this one process, on the same sequence; a figure is the median of its
// rounds.
#include <tests/bench/bench_pool.hpp>

#include <array>
#include <chrono>
#include <cstring>

namespace {

using namespace holdfast;
using bench_clock = std::chrono::steady_clock;
constexpr std::size_t live = 1024;
// Short rounds, many of them: on a busy machine most rounds then run without being interrupted.
constexpr int rounds = 2001;
constexpr int steps_a_round = 1'000;

// Drawn before anything is timed.
struct step {
  std::size_t slot;
  std::uint64_t bytes;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && std::strcmp(argv[1], "--json") != 0)) {
    std::fputs("usage: real_p2_pool_churn [--json]\n", stderr);
    return 2;
  }
  pinned::settings options;
  options.initial_arena_bytes = std::uint64_t{1} << 30;  // one arena holds them all
  options.registered_bytes_budget = std::uint64_t{4} << 30;
  bench::pool pool(options);
  bench::random draw(1);
  std::vector<step> steps(steps_a_round);
  std::array<pinned::buffer, live> ours;
  std::array<void*, live> theirs{};
  for (std::size_t i = 0; i < live; ++i) {
    const std::uint64_t bytes = bench::churn_bytes(draw);
    ours[i] = pool.must_alloc(bytes);
    theirs[i] = std::malloc(bytes);
  }
  std::vector<double> our_ns, their_ns;
  std::uint64_t refused = 0;
  for (int round = 0; round < rounds; ++round) {
    for (step& one : steps) one = {static_cast<std::size_t>(draw.below(live)), bench::churn_bytes(draw)};
    const auto began = bench_clock::now();
    for (const step& one : steps) {
      ours[one.slot].reset();
      auto got = pool.memory().try_alloc(one.bytes);
      if (got)
        ours[one.slot] = std::move(*got);
      else
        ++refused;
    }
    const auto between = bench_clock::now();
    for (const step& one : steps) {
      std::free(theirs[one.slot]);
      theirs[one.slot] = std::malloc(one.bytes);
      asm volatile("" : : "r"(theirs[one.slot]) : "memory");
    }
    const auto ended = bench_clock::now();
    our_ns.push_back(std::chrono::duration<double, std::nano>(between - began).count() / steps_a_round);
    their_ns.push_back(std::chrono::duration<double, std::nano>(ended - between).count() / steps_a_round);
  }
  for (void* const one : theirs) std::free(one);
  if (refused != 0) {
    std::fprintf(stderr, "real_p2_pool_churn: %llu requests were refused: nothing was measured\n",
                 static_cast<unsigned long long>(refused));
    return 1;
  }
  const double mine = bench::median(our_ns), libc = bench::median(their_ns);
  nlohmann::json rows = nlohmann::json::array();
  rows.push_back({{"id", "P2"},
                  {"ours", mine},
                  {"unit", "ns/step"},
                  {"others", {{"glibc", libc}}},
                  {"ratio_to_best", mine / libc},
                  {"goal", 45},
                  {"met", mine <= 45}});
  return bench::print(rows, argc == 2);
}
