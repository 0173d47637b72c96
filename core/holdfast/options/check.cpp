#include <holdfast/platform/abi.hpp>

#include <holdfast/options/check.hpp>

#include <cstdio>

namespace holdfast::inline HOLDFAST_ABI::options {

namespace {

result<void> within(const char* operation, const char* member, std::uint64_t value, std::uint64_t low,
                    std::uint64_t high) noexcept {
  if (value >= low && value <= high) return {};
  char words[sizeof(error::words)];
  std::snprintf(words, sizeof words, "%s %llu not in %llu..%llu", member, static_cast<unsigned long long>(value),
                static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
  auto failure = fail_with_words(error_code::out_of_range, operation, words, 0, value);
  failure.error().numbers[1] = low;
  failure.error().numbers[2] = high;
  return failure;
}

}  // namespace

result<void> check_number(option_id which, const char* operation, const char* member, std::uint64_t value) noexcept {
  const option_description& what = description_of(which);
  return within(operation, member, value, what.low, what.high);
}

result<void> check_text(option_id which, const char* operation, const char* member, std::string_view value) noexcept {
  return check_number(which, operation, member, value.size());
}

result<void> check_above(option_id upper, const char* operation, const char* member, std::uint64_t lower,
                         std::uint64_t value) noexcept {
  return within(operation, member, value, lower, description_of(upper).high);
}

}  // namespace holdfast::inline HOLDFAST_ABI::options
