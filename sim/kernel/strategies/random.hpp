// Chance decides, with weights that are part of the run's name.
//
// Why this exists: most bugs need few switches at the right place. How long a fiber runs before another does, and how
// fast time goes meanwhile, matters more than the single choice; so both are drawn anew for each run, and written into
// its trace.
//
// Units       Parts in a thousand.
// Threading   One OS thread, in kernel scope. Failure: none. Allocates nothing in a run.
#pragma once

#include <sim/kernel/random.hpp>
#include <sim/kernel/strategy.hpp>

#include <optional>

namespace holdfast::sim {

struct random_weights {
  /// Chance that the current fiber goes on; otherwise one of the others, each alike.
  std::uint32_t stay = 500;
  /// Chance that time moves although a fiber could run.
  std::uint32_t time = 20;
};

class random_strategy final : public strategy {
 public:
  /// Without weights, each run draws its own from its seed.
  explicit random_strategy(std::optional<random_weights> weights) noexcept : given_(weights) {}
  /// "random:stay=700,time=20", the weights of the run that began last.
  std::string_view name() const noexcept override;
  void begin(world& w) override;
  std::uint32_t choose(world& w, const choice_point& at) override;

 private:
  std::optional<random_weights> given_;
  random_weights weights_;
  // The weights as thresholds for 16 random bits.
  std::uint32_t stay_below_ = 0;
  std::uint32_t time_below_ = 0;
  random_stream stream_;
  mutable char name_[48] = "random";
};

}  // namespace holdfast::sim
