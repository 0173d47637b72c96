// Feeds the reader of option files: it answers with assignments in the order of their lines, or with printable sentences
// that begin with the file's name; and what it read is resolved without a crash.
#include <holdfast/platform/abi.hpp>

#include <environment/toml_file.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void expect_sentence(const std::string& text) {
  if (!text.starts_with("f.toml:")) std::abort();
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace options = holdfast::options;
  auto read = options::read_toml({reinterpret_cast<const char*>(data), size}, "f.toml");
  if (!read) {
    if (read.error().sentences.empty()) std::abort();
    for (const std::string& sentence : read.error().sentences) expect_sentence(sentence);
    return 0;
  }
  if (!std::ranges::is_sorted(*read, {}, &options::assignment::line)) std::abort();
  for (const options::assignment& one : *read)
    if (one.line == 0 || one.file != "f.toml") std::abort();
  const auto made = options::resolve({{}, {}, std::move(*read)});
  if (!made)
    for (const std::string& sentence : made.error().sentences)
      if (sentence.find("\n") != sentence.npos) std::abort();
  return 0;
}
