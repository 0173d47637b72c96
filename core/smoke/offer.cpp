#include <holdfast/platform/abi.hpp>

#include "smoke/offer.hpp"

#include <charconv>
#include <sstream>
#include <vector>

namespace holdfast::smoke {

std::string to_line(const offer& what) {
  static constexpr char digits[] = "0123456789abcdef";
  std::ostringstream out;
  out << "offer " << what.address << ' ' << what.who.worker_id << ' ' << what.who.incarnation << ' '
      << what.memory.address << ' ' << what.memory.length << ' ' << what.memory.generation << ' '
      << what.memory.incarnation << ' ';
  for (const std::byte b : what.memory.key.bytes())
    out << digits[std::to_integer<unsigned>(b) >> 4] << digits[std::to_integer<unsigned>(b) & 15];
  out << '\n';
  return out.str();
}

std::optional<offer> parse_offer(const std::string& line) {
  std::istringstream in(line);
  offer made;
  std::string word, key;
  if (!(in >> word >> made.address >> made.who.worker_id >> made.who.incarnation >> made.memory.address >>
        made.memory.length >> made.memory.generation >> made.memory.incarnation >> key) ||
      word != "offer" || key.size() % 2 != 0)
    return std::nullopt;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < key.size(); i += 2) {
    unsigned value = 0;
    const auto [end, failed] = std::from_chars(key.data() + i, key.data() + i + 2, value, 16);
    if (failed != std::errc{} || end != key.data() + i + 2) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(value));
  }
  if (!made.memory.key.assign(bytes)) return std::nullopt;
  return made;
}

}  // namespace holdfast::smoke
