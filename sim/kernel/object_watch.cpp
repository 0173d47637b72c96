#include <sim/kernel/object_watch.hpp>

#include <sim/kernel/kernel_scope.hpp>

#include <utility>

namespace holdfast::sim {

namespace {

std::uint64_t mix(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (hash ^ 0xff) * 0x100000001b3u;
}

}  // namespace

void object_watch::begin() { objects_.assign(1, seen{}); }

void object_watch::made(std::string_view fiber, std::string_view kind) {
  const std::uint64_t hash = mix(mix(0xcbf29ce484222325u, fiber), kind);
  objects_.push_back({hash, nobody, false, shared_.contains(hash)});
}

void object_watch::learn(seen& o) {
  kernel_scope kernel;  // it may be called on a fiber
  o.shared = true;
  if (shared_.insert(o.name).second) learned_ = true;
}

bool object_watch::learned() noexcept { return std::exchange(learned_, false); }

}  // namespace holdfast::sim
