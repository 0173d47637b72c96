#include <holdfast/platform/abi.hpp>

#include "environment/toml_file.hpp"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/impl/preprocessor.h>
// "[," breaks what the parser of 3.3 assumes of its own caller: an abort with assertions, undefined behavior in clang's
// release builds. Without the assumption the code behind it finds the mistake and reports it (tomlplusplus issue 294).
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expression) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>

namespace holdfast::inline HOLDFAST_ABI::options {

namespace {

std::string at(const std::string& file, std::size_t line) { return file + ":" + std::to_string(line) + ": "; }

// A parser's words in one line, with nothing in them that a terminal should not get.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

class reader {
 public:
  explicit reader(const std::string& file) noexcept : file_(file) {}

  void take(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      const auto line = static_cast<unsigned>(key.source().begin.line);
      if (const toml::table* const inner = node.as_table()) {
        // An empty one still may be a misspelled one.
        if (inner->empty() && !is_subsystem(name))
          found_.push_back({name, "", file_, line});
        else
          take(*inner, name + ".");
        continue;
      }
      take_value(name, node, line);
    }
  }

  std::expected<std::vector<assignment>, refusal> finish() {
    if (!wrong_.sentences.empty()) return std::unexpected(std::move(wrong_));
    std::ranges::stable_sort(found_, {}, &assignment::line);
    return std::move(found_);
  }

 private:
  static bool is_subsystem(std::string_view name) {
    return std::ranges::any_of(option_table(), [name](const option_description& d) { return d.subsystem == name; });
  }

  void refuse(unsigned line, const std::string& name, std::string_view sentence) {
    wrong_.add(at(file_, line) + one_line(name) + ": " + std::string(sentence));
  }

  void take_value(const std::string& name, const toml::node& node, unsigned line) {
    const option_description* const what = find_option(name);
    if (what == nullptr) return found_.push_back({name, "", file_, line});
    if (const auto* const text = node.as_string()) {
      // One string could be the list, and could be one word of it: both are the same.
      found_.push_back({name, text->get(), file_, line});
    } else if (const auto* const list = node.as_array()) {
      take_list(*what, *list, line);
    } else if (!is_number(what->kind)) {
      refuse(line, name,
             what->kind == option_kind::list ? "needs a list, as [\"tcp\", \"self\"]" : "needs a text in quotes");
    } else if (const auto* const number = node.as_integer()) {
      found_.push_back({name, std::to_string(number->get()), file_, line});
    } else if (const auto* const flag = node.as_boolean()) {
      found_.push_back({name, flag->get() ? "true" : "false", file_, line});
    } else {
      refuse(line, name, "has a value of a kind that no option has; " + range_text(*what));
    }
  }

  void take_list(const option_description& what, const toml::array& list, unsigned line) {
    if (what.kind != option_kind::list) return refuse(line, std::string(what.name), "is no list");
    std::string joined;
    for (const toml::node& one : list) {
      const auto* const word = one.as_string();
      if (word == nullptr || word->get().find(',') != std::string::npos)
        return refuse(line, std::string(what.name), "has an entry that is no word in quotes");
      if (&one != &list.front()) joined += ',';
      joined += word->get();
    }
    found_.push_back({std::string(what.name), std::move(joined), file_, line});
  }

  const std::string& file_;
  std::vector<assignment> found_;
  refusal wrong_;
};

}  // namespace

std::expected<std::vector<assignment>, refusal> read_toml(std::string_view text, const std::string& file) {
  refusal wrong;
  if (text.size() > toml_bytes_max) {
    wrong.add(file + ": is larger than " + std::to_string(toml_bytes_max) + " bytes, too large for a file of options");
    return std::unexpected(std::move(wrong));
  }
  // Keys of a thousand dots would nest as deep.
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > toml_line_bytes_max) {
      wrong.add(at(file, line) + "is longer than " + std::to_string(toml_line_bytes_max) + " bytes");
      return std::unexpected(std::move(wrong));
    }
    begin = end + 1;
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    wrong.add(at(file, parsed.error().source().begin.line) + one_line(parsed.error().description()));
    return std::unexpected(std::move(wrong));
  }
  reader read(file);
  read.take(parsed.table(), "");
  return read.finish();
}

}  // namespace holdfast::inline HOLDFAST_ABI::options
