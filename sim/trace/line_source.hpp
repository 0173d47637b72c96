// Lines of a file, plain or compressed.
//
// Why this exists: a trace may be larger than memory should be asked for, and may be anything at all: it is read as a
// stream, a line at a time, with a bound on the line.
//
// Ownership   Owns the file. Units: bytes; lines are numbered from 1. Threading: one thread.
// Failure     A sentence that names file and line; nothing can be read after one.
#pragma once

#include <sim/trace/trace.hpp>

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::sim {

class line_source {
 public:
  /// A name that ends in ".zst" is decompressed.
  static std::expected<line_source, std::string> open(const std::string& path);
  line_source(line_source&&) noexcept;
  line_source& operator=(line_source&&) noexcept;
  ~line_source();

  /// The next line without its end, valid until the next call; false after the last.
  std::expected<bool, std::string> next(std::string_view& line);
  /// Number of the line that `next` gave last.
  std::uint64_t number() const noexcept { return number_; }
  /// "file:12: sentence".
  std::string complain(std::uint64_t line, const std::string& sentence) const;

 private:
  struct state;
  explicit line_source(std::unique_ptr<state> s);
  std::expected<bool, std::string> fill();

  std::unique_ptr<state> state_;
  std::uint64_t number_ = 0;
};

}  // namespace holdfast::sim
