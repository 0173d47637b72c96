#include <holdfast/platform/abi.hpp>

#include "tool/program.hpp"

#include <holdfast/options/value.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>

namespace holdfast::tool {

namespace {

namespace library = holdfast::options;
using library::option_kind;

constexpr std::size_t terminal_columns = 80;
constexpr std::size_t text_column = 26;

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

bool has_default(const library::option_description& what) noexcept {
  return library::is_number(what.kind) || !what.initial.text.empty();
}

bool all_digits(std::string_view text) noexcept {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// A line of help: the option, and its text from a column on, or below if the option is long.
void add_row(std::string& out, std::string_view option, std::string_view text) {
  std::string row = "  " + std::string(option);
  if (row.size() + 2 > text_column)
    row += "\n" + std::string(text_column, ' ');
  else
    row.resize(text_column, ' ');
  out += row + wrapped(text, text_column, terminal_columns) + "\n";
}

std::string shown(const program_option& option) {
  std::string out(option.what.name);
  if (option.how != given_as::flag) out.append(" ").append(option.placeholder);
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (column > indent && column + 1 + word.size() > columns) {
      out.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string value_text(const program_option& option) {
  if (option.how == given_as::flag) return "";
  std::string out;
  if (option.what.kind != option_kind::text && option.what.kind != option_kind::list)
    out = library::range_text(option.what);
  if (option.how == given_as::many) return out + (out.empty() ? "" : "; ") + "may be given more than once";
  if (!has_default(option.what)) return out;
  return out + (out.empty() ? "" : "; ") + "otherwise " +
         library::print_value(option.what, library::initial_of(option.what));
}

std::string help_text(const program& of) {
  std::string out = wrapped(std::string(of.name) + ": " + std::string(of.summary), 0, terminal_columns) + "\n";
  out += "\nUsage: " + std::string(of.name) + " [OPTION]...\n\nOptions:\n";
  for (const program_option& option : of.options) {
    if (option.how == given_as::hidden) continue;
    std::string text(option.what.text);
    if (const std::string values = value_text(option); !values.empty()) text += " (" + values + ")";
    add_row(out, shown(option), text);
  }
  add_row(out, "--version", "name and version");
  add_row(out, "--help", "this text");
  if (of.configured) {
    out += "\n" +
           wrapped(
               "Options of the library, each also a variable (pinned.unmap_timeout: HOLDFAST_PINNED_UNMAP_TIMEOUT) "
               "and a key of holdfast.toml ([pinned] unmap_timeout); an argument wins over a variable, that over the "
               "file, that over the default:",
               0, terminal_columns) +
           "\n";
    for (const library::option_description& what : library::option_table())
      add_row(out, "--" + std::string(what.name),
              std::string(what.text) + " (" + library::range_text(what) + "; otherwise " +
                  library::print_value(what, library::initial_of(what)) + ")");
  }
  out += "\nExit:\n";
  for (const titled_text& exit : of.exits) add_row(out, exit.title, exit.text);
  return out;
}

const program_option* command_line::known(std::string_view name) const noexcept {
  const auto found = std::ranges::find(of_->options, name, [](const program_option& o) { return o.what.name; });
  return found == of_->options.end() ? nullptr : &*found;
}

bool command_line::has(std::string_view name) const noexcept {
  return std::ranges::any_of(given_, [name](const one& g) { return g.what->what.name == name; });
}

std::optional<library::option_value> command_line::value(std::string_view name) const {
  for (const one& g : given_)
    if (g.what->what.name == name) return g.value;
  const program_option* const what = known(name);
  if (what == nullptr || what->how == given_as::hidden || !has_default(what->what)) return std::nullopt;
  return library::initial_of(what->what);
}

std::vector<std::string> command_line::texts(std::string_view name) const {
  std::vector<std::string> out;
  for (const one& g : given_)
    if (g.what->what.name == name) out.push_back(g.value.text);
  return out;
}

std::optional<command_line> command_line::parse(const program& of, int argc, const char* const* argv) {
  struct bound {
    const program_option* of_program;
    const library::option_description* what;
    std::vector<std::string> values;
    bool set;
  };
  CLI::App app;
  app.set_help_flag();
  bool help = false, version = false;
  app.add_flag("--help,-h", help);
  app.add_flag("--version", version);
  std::deque<bound> all;  // what is bound to an option stays where it is
  for (const program_option& option : of.options) {
    bound& b = all.emplace_back(&option, &option.what, std::vector<std::string>{}, false);
    const std::string name(option.what.name);
    if (option.how == given_as::flag) {
      app.add_flag(name, b.set);
      continue;
    }
    CLI::Option* const made = app.add_option(name, b.values)->expected(1);
    if (option.how == given_as::many) made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  if (of.configured)
    for (const library::option_description& what : library::option_table()) {
      bound& b = all.emplace_back(nullptr, &what, std::vector<std::string>{}, false);
      app.add_option("--" + std::string(what.name), b.values)->expected(1);
    }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    throw usage_error{one_line(e.what()) + "; see --help"};
  }
  if (help || version) {
    const std::string text = help ? help_text(of) : std::string(of.name) + " " HOLDFAST_VERSION "\n";
    std::fputs(text.c_str(), stdout);
    return std::nullopt;
  }
  command_line out(of);
  for (bound& b : all) {
    if (b.set) out.given_.push_back({b.of_program, {}});
    for (std::string& value : b.values) {
      if (b.of_program == nullptr) {
        out.overrides_.push_back({std::string(b.what->name), std::move(value)});
        continue;
      }
      if (b.of_program->how == given_as::seconds && all_digits(value)) value += "s";
      auto read = library::parse_value(*b.what, value);
      if (!read) throw usage_error{std::string(b.what->name) + ": " + read.error()};
      out.given_.push_back({b.of_program, std::move(*read)});
    }
  }
  return out;
}

}  // namespace holdfast::tool
