// Feeds everything between what was given and what is in force: each line is an assignment, of an argument, a variable
// or a file by its first letter. Either all options are in force, inside their ranges and with the origin that was given,
// or none is and every sentence is printable and in one line.
#include <holdfast/platform/abi.hpp>

#include <holdfast/options/configuration.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

namespace options = holdfast::options;

void expect_sentence(const std::string& text) {
  if (text.empty()) std::abort();
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
}

options::sources sources_in(std::string_view text) {
  options::sources given;
  unsigned number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    const std::string_view rest = line.substr(1);
    const std::size_t sign = std::min(rest.find('='), rest.size());
    options::assignment one{std::string(rest.substr(0, sign)),
                            std::string(sign == rest.size() ? std::string_view() : rest.substr(sign + 1))};
    if (line[0] == 'a') {
      given.arguments.push_back(std::move(one));
    } else if (line[0] == 'e') {
      given.environment.push_back(std::move(one));
    } else if (line[0] == 'f') {
      one.file = "f.toml";
      one.line = number;
      given.file.push_back(std::move(one));
    }
  }
  return given;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const options::sources given = sources_in({reinterpret_cast<const char*>(data), size});
  const auto made = options::resolve(given);
  if (!made) {
    if (made.error().sentences.empty() || made.error().sentences.size() > options::refusal::sentences_max) std::abort();
    for (const std::string& sentence : made.error().sentences) expect_sentence(sentence);
    return 0;
  }
  for (const std::string& sentence : made->warnings()) expect_sentence(sentence);
  const auto table = options::option_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto& setting = made->of(static_cast<options::option_id>(i));
    if (!options::objection(table[i], setting.value).empty()) std::abort();
    const auto names = [&](const options::assignment& a) {
      return a.name == table[i].name || a.name == table[i].variable;
    };
    const options::origin_kind strongest =
        std::ranges::any_of(given.arguments, names) ? options::origin_kind::argument
        : std::ranges::any_of(given.environment, [&](const auto& a) { return a.name == table[i].variable; })
            ? options::origin_kind::environment
        : std::ranges::any_of(given.file, names) ? options::origin_kind::file
                                                 : options::origin_kind::initial;
    if (setting.from.from != strongest) std::abort();
  }
  return 0;
}
