// Priorities decide, and change at few places (probabilistic concurrency testing, Burckhardt and others, 2010).
//
// Why this exists: a bug of depth d needs d ordering constraints to hold. Among n threads that make k choices, one run
// of this strategy with d-1 changes finds any such bug with a probability of at least 1/(n·k^(d-1)), however many
// steps lie between; chance alone needs a lucky draw at every one of them.
//
// How         Every fiber draws a priority when it is first seen, and virtual time is one more thread with its own. The
//             highest enabled one runs. At d-1 places, drawn from 1 … k, the one that would run falls below all that
//             did not fall yet.
// Fairness    Who yields falls below everybody, and so does whoever would run at choices k+1, 2k+1 …: a run that is
//             longer than its estimate goes on in turns, so that neither a fiber that spins nor events without end can
//             keep the rest from running. Within the first k choices the guarantee holds for programs that do not yield.
// Units       Lengths are choices: scheduling points with two or more enabled entries.
// Threading   One OS thread, in kernel scope. Failure: none.
#pragma once

#include <sim/kernel/random.hpp>
#include <sim/kernel/strategy.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::sim {

class pct_strategy final : public strategy {
 public:
  static constexpr std::uint32_t depth_max = 16;
  static constexpr std::uint32_t length_max = 1'000'000'000;

  /// `depth` from 1 to `depth_max`. Without a length, each run draws its own from its seed, from 32 to 16,384: how long
  /// a run is going to be is not known before it is made, and must not come from an earlier one.
  pct_strategy(std::uint32_t depth, std::optional<std::uint32_t> length) noexcept : depth_(depth), given_(length) {}
  /// "pct:3,2048", with the length of the run that began last.
  std::string_view name() const noexcept override;
  void begin(world& w) override;
  std::uint32_t choose(world& w, const choice_point& at) override;

 private:
  // The higher one runs. A drawn priority has the top bit set; below them are those of the changes, in the order in
  // which these were drawn; below these are fibers that gave way, the last one lowest.
  using priority = std::uint64_t;
  static constexpr priority drawn_bit = priority{1} << 63;
  static constexpr priority changed_base = priority{1} << 62;

  struct change {
    std::uint32_t choice;
    priority to;
  };
  priority draw() noexcept { return stream_.next() | drawn_bit; }
  priority& priority_of(std::uint32_t fiber);
  priority& highest(world& w, const choice_point& at, std::uint32_t& entry);

  std::uint32_t depth_;
  std::optional<std::uint32_t> given_;
  std::uint32_t length_ = 0;
  random_stream stream_;
  std::uint64_t choices_ = 0;
  std::vector<change> changes_;  // in the order in which they are due
  std::size_t next_change_ = 0;
  std::vector<priority> fibers_;  // by the number of the fiber; 0: not drawn yet
  priority time_ = 0;
  priority lowest_ = 0;
  mutable char name_[32] = "pct";
};

}  // namespace holdfast::sim
