// Man pages and the documentation's page of options, out of the tables.
//
// Ownership   Values. Threading: pure functions. Failure: none.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "tool/program.hpp"

#include <string>
#include <string_view>

namespace holdfast::tool {

/// A page for man, from top to bottom.
class man_page {
 public:
  man_page(std::string_view name, int section, std::string_view summary);
  void section(std::string_view title);
  void paragraph(std::string_view text);
  void item(std::string_view term, std::string_view text);
  /// Lines as they are.
  void example(std::string_view text);
  const std::string& text() const noexcept { return out_; }

 private:
  std::string out_;
};

/// holdfast-smoke.1 and its like.
std::string manual(const program& of);
/// holdfast.toml.5.
std::string file_manual();
/// docs/options.md.
std::string options_document();

}  // namespace holdfast::tool
