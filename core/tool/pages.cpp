#include <holdfast/platform/abi.hpp>

#include "tool/pages.hpp"

#include <holdfast/options/value.hpp>

namespace holdfast::tool {

namespace {

namespace library = holdfast::options;

// What troff would take for its own.
std::string escaped(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_begins = c == '\n';
  }
  return out;
}

std::string capitals(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

constexpr std::string_view forms[][2] = {
    {"size",
     "bytes, or a number with KiB, MiB, GiB or TiB: 64MiB. Suffixes that can be read in two ways (64M, 64MB) are "
     "refused"},
    {"duration", "a number with ns, us, ms, s, min or h: 250ms. Without a unit it is refused; some may be never"},
    {"number", "digits alone"},
    {"true or false", "these two words"},
    {"choice", "one of the words that are named"},
    {"text", "anything printable"},
    {"list", "words, separated by commas"},
};

constexpr std::string_view order_text =
    "Of an option that is given more than once the argument wins over the variable, that over the file, that over the "
    "default. All of them are read before anything starts: whatever is wrong, in whichever of them, is reported with "
    "its "
    "place, the option, the value and the range, and nothing is applied. An unknown key in a file is an error, with "
    "the "
    "nearest known name; an unknown variable that begins with HOLDFAST_ is a warning.";

constexpr std::string_view file_text =
    "The file is the one that HOLDFAST_CONFIG names, or else holdfast.toml in the working directory if there is one.";

constexpr std::string_view names_text =
    "One name gives all others: pinned.unmap_timeout is the argument --pinned.unmap_timeout, the variable "
    "HOLDFAST_PINNED_UNMAP_TIMEOUT, and the key unmap_timeout in the table [pinned] of the file.";

std::string details(const library::option_description& what) {
  std::string out(library::kind_text(what.kind));
  if (what.kind != library::option_kind::boolean) out += ", " + library::range_text(what);
  return out;
}

std::string initial(const library::option_description& what) {
  return library::print_value(what, library::initial_of(what));
}

std::string rule_text(const library::order_rule& rule) {
  return std::string(library::description_of(rule.lower).name) + " may not exceed " +
         std::string(library::description_of(rule.upper).name);
}

// A cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

man_page::man_page(std::string_view name, int section, std::string_view summary) {
  out_ = ".\\\" Generated from the tables of options by the test OptionsDocument.\n.TH " + capitals(escaped(name)) +
         " " + std::to_string(section) + " \"\" \"Holdfast " HOLDFAST_VERSION "\"\n.SH NAME\n" + escaped(name) +
         " \\- " + escaped(summary) + "\n";
}

void man_page::section(std::string_view title) { out_ += ".SH " + capitals(escaped(title)) + "\n"; }
void man_page::paragraph(std::string_view text) { out_ += ".PP\n" + escaped(text) + "\n"; }
void man_page::item(std::string_view term, std::string_view text) {
  out_ += ".TP\n.B " + escaped(term) + "\n" + escaped(text) + "\n";
}
void man_page::example(std::string_view text) { out_ += ".PP\n.nf\n" + escaped(text) + "\n.fi\n"; }

std::string manual(const program& of) {
  man_page page(of.name, 1, of.summary);
  page.section("synopsis");
  page.paragraph(std::string(of.name) + " [OPTION]...");
  page.section("description");
  for (const std::string_view paragraph : of.paragraphs) page.paragraph(paragraph);
  page.section("options");
  for (const program_option& option : of.options) {
    if (option.how == given_as::hidden) continue;
    std::string text(option.what.text);
    if (const std::string values = value_text(option); !values.empty()) text += " (" + values + ")";
    page.item(
        std::string(option.what.name) + (option.how == given_as::flag ? "" : " " + std::string(option.placeholder)),
        text);
  }
  page.item("--version", "name and version");
  page.item("--help", "the options, on standard output");
  if (of.configured) {
    page.section("options of the library");
    page.paragraph("Each may be given as an argument, --NAME VALUE; see holdfast.toml(5).");
    for (const library::option_description& what : library::option_table())
      page.item("--" + std::string(what.name),
                std::string(what.text) + " (" + details(what) + "; otherwise " + initial(what) + ")");
    page.section("environment");
    page.item("HOLDFAST_CONFIG", "the file to read instead of holdfast.toml in the working directory");
    page.item("HOLDFAST_...", "every option of the library; see holdfast.toml(5)");
    page.section("files");
    page.item("holdfast.toml", "options, see holdfast.toml(5)");
  }
  page.section("exit status");
  for (const titled_text& exit : of.exits) page.item(exit.title, exit.text);
  page.section("see also");
  std::string others;
  for (const std::string_view other :
       {"holdfast-info(1)", "holdfast-sim(1)", "holdfast-smoke(1)", "holdfast.toml(5)"}) {
    if (other.starts_with(std::string(of.name) + "(")) continue;
    others.append(others.empty() ? "" : ", ").append(other);
  }
  page.paragraph(others);
  return page.text();
}

std::string file_manual() {
  man_page page("holdfast.toml", 5, "options of the Holdfast library");
  page.section("description");
  page.paragraph(file_text);
  page.paragraph(
      "It is written in TOML: a table for each subsystem, a key for each option. Sizes and durations are texts "
      "in quotes, except sizes in bytes; lists may be lists of texts.");
  page.paragraph(order_text);
  page.paragraph(names_text);
  page.section("values");
  for (const auto& form : forms) page.item(form[0], form[1]);
  page.section("options");
  for (const library::option_description& what : library::option_table())
    page.item(what.name, std::string(what.text) + " (" + details(what) + "; otherwise " + initial(what) + "; since " +
                             std::string(what.since) + ")");
  for (const library::order_rule& rule : library::order_rules()) page.paragraph(rule_text(rule) + ".");
  page.section("environment");
  for (const library::option_description& what : library::option_table())
    page.item(what.variable, std::string(what.name));
  page.section("example");
  page.example(
      "[pinned]\nregistered_bytes_budget = \"8GiB\"\narena_reclaim_after = \"10min\"\n\n[transport]\n"
      "listen_address = \"192.0.2.7:0\"\ntransports = [\"tcp\"]");
  page.section("see also");
  page.paragraph("holdfast-info(1), which shows the value of every option and where it came from.");
  return page.text();
}

std::string options_document() {
  std::string out =
      "# Options\n\nEvery option of the library, out of `core/holdfast/options/options.def`; this page is generated "
      "from that table by the test `OptionsDocument`. `holdfast-info` shows the values in force, each with its "
      "origin.\n\n" +
      std::string(names_text) + " " + std::string(file_text) + "\n\n" + std::string(order_text) +
      "\n\n| Kind | Written as |\n| --- | --- |\n";
  for (const auto& form : forms) out += "| " + std::string(form[0]) + " | " + std::string(form[1]) + " |\n";
  std::string_view subsystem;
  for (const library::option_description& what : library::option_table()) {
    if (what.subsystem != subsystem) {
      subsystem = what.subsystem;
      out += "\n## " + std::string(subsystem) +
             "\n\n| Option | Kind and range | Default | Since | Meaning |\n| --- | --- | --- | --- | --- |\n";
    }
    out += "| `" + std::string(what.name) + "` | " + cell(details(what)) + " | `" + initial(what) + "` | " +
           std::string(what.since) + " | " + cell(what.text) + " |\n";
  }
  out += "\n## Rules\n\n";
  for (const library::order_rule& rule : library::order_rules()) out += "* " + rule_text(rule) + ".\n";
  out += "\n## Other variables\n\n| Variable | Meaning |\n| --- | --- |\n";
  for (const library::other_variable& other : library::other_variables())
    out += "| `" + std::string(other.name) + "` | " + std::string(other.text) + " |\n";
  return out;
}

}  // namespace holdfast::tool
