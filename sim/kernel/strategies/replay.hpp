// Choices come from a record.
//
// Why this exists: the same file has to show the same run. If the run differs, the first difference is what one wants
// to know, with both sides named.
//
// Ownership   Borrows the record for its life.
// Units       Choices are numbered from 0.
// Threading   One OS thread, in kernel scope.
// Failure     `mismatch`. What follows one is decided by `after_mismatch`.
#pragma once

#include <sim/kernel/strategy.hpp>
#include <sim/trace/trace.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::sim {

enum class after_mismatch : std::uint8_t {
  stop,  // the run ends with the violation "divergence"
  fifo,  // the run goes on as `fifo`
};

constexpr std::string_view divergence = "divergence";

struct replay_mismatch {
  std::uint64_t choice;
  std::string sentence;
};

/// Follows a trace, comparing labels and checks.
class replay_strategy final : public strategy {
 public:
  replay_strategy(const recorded_choices& record, after_mismatch then) noexcept : record_(record), then_(then) {}
  std::string_view name() const noexcept override { return "replay"; }
  void begin(world&) override;
  std::uint32_t choose(world& w, const choice_point& at) override;

  const std::optional<replay_mismatch>& mismatch() const noexcept { return mismatch_; }
  /// Choices that agreed.
  std::uint64_t followed() const noexcept { return next_; }

 private:
  std::uint32_t differ(world& w, const choice_point& at, const std::string& expected);

  const recorded_choices& record_;
  after_mismatch then_;
  std::uint64_t next_ = 0;
  std::optional<replay_mismatch> mismatch_;
};

/// Follows bare indices (LEB128, as `world::choices` gives them), to make the same run again in the same process.
class index_replay_strategy final : public strategy {
 public:
  /// `fifo`: the record is the beginning of a run, the rest is not forced.
  index_replay_strategy(std::span<const std::uint8_t> record, after_mismatch at_end) noexcept
      : record_(record), at_end_(at_end) {}
  std::string_view name() const noexcept override { return "replay"; }
  void begin(world&) override { at_ = 0; }
  std::uint32_t choose(world& w, const choice_point& at) override;
  bool exhausted() const noexcept { return at_ == record_.size(); }

 private:
  std::span<const std::uint8_t> record_;
  after_mismatch at_end_;
  std::size_t at_ = 0;
};

/// Appends `index` in LEB128.
void append_index(std::vector<std::uint8_t>& record, std::uint32_t index);

}  // namespace holdfast::sim
