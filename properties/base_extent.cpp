// The extent index against a map of its granules: any order of takes and puts, every answer, every rule after each step.
#include <properties/in_world.hpp>

#include <holdfast/base/extent_index.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

namespace holdfast::properties {

namespace {

// Free ranges by offset, joined; the specification in its simplest form.
struct free_map {
  std::map<std::uint32_t, std::uint32_t> ranges;
  std::optional<std::uint32_t> best(std::uint32_t granules) const {
    std::optional<std::uint32_t> found;
    for (const auto& [offset, size] : ranges)
      if (size >= granules && (!found || size < ranges.at(*found))) found = offset;
    return found;
  }
  void take(std::uint32_t offset, std::uint32_t granules) {
    const std::uint32_t size = ranges.at(offset);
    ranges.erase(offset);
    if (size > granules) ranges.emplace(offset + granules, size - granules);
  }
  void put(std::uint32_t offset, std::uint32_t granules) {
    auto at = ranges.emplace(offset, granules).first;
    if (const auto next = std::next(at); next != ranges.end() && offset + granules == next->first) {
      at->second += next->second;
      ranges.erase(next);
    }
    if (at != ranges.begin())
      if (const auto below = std::prev(at); below->first + below->second == at->first) {
        below->second += at->second;
        ranges.erase(at);
      }
  }
};

void agrees(const extent_index& index, const free_map& model) {
  RC_ASSERT(index.consistent());
  std::map<std::uint32_t, std::uint32_t> seen;
  index.for_each([&](std::uint32_t offset, std::uint32_t granules, bool is_free) {
    if (is_free) seen.emplace(offset, granules);
  });
  RC_ASSERT(seen == model.ranges);
  std::uint64_t sum = 0;
  std::uint32_t largest = 0;
  for (const auto& [offset, size] : model.ranges) {
    sum += size;
    largest = std::max(largest, size);
  }
  RC_ASSERT(index.free_granules() == sum);
  RC_ASSERT(index.largest_free() == largest);
  RC_ASSERT(index.free_extents() == model.ranges.size());
}

}  // namespace

RC_GTEST_PROP(BaseExtent, EveryAnswerIsTheModels, ()) {
  const std::uint32_t total = *rc::gen::element(1u, 7u, 64u, 255u, 300u, 5'000u, 1u << 20);
  extent_index index(total);
  free_map model{{{0, total}}};
  const std::uint64_t whole = index.digest();
  std::vector<std::unique_ptr<extent_node>> nodes;
  std::vector<extent_node*> spare, live;
  const auto keep = [&](extent_node* chain) {
    while (chain != nullptr) {
      extent_node* const next = chain->next_spare();
      spare.push_back(chain);
      chain = next;
    }
  };
  // Sizes of all scales: small, near a bin's edge, nearly everything.
  const auto size_of = [&](const command& c) {
    const std::uint32_t scales[] = {1 + c.a % 4, 1 + c.a, 250 + c.a % 16, total / 2 + c.a, 1'000 + 13 * c.a, total};
    return std::clamp<std::uint32_t>(scales[c.b % 6], 1, total);
  };
  for (const command& c : *commands(5, 64)) {
    if (c.kind < 3 || live.empty()) {
      if (spare.empty()) {
        nodes.push_back(std::make_unique<extent_node>());
        spare.push_back(nodes.back().get());
      }
      extent_node& node = *spare.back();
      const std::uint32_t granules = size_of(c);
      const auto expected = model.best(granules);
      const auto taken = index.take(granules, node);
      RC_ASSERT(taken.granted == expected.has_value());
      if (taken.granted) {
        spare.pop_back();
        keep(taken.spare);
        RC_ASSERT(node.offset() == *expected);
        RC_ASSERT(node.granules() == granules);
        model.take(*expected, granules);
        live.push_back(&node);
      }
    } else {
      const std::size_t which = (c.a * 64 + c.b) % live.size();
      extent_node& node = *live[which];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      model.put(node.offset(), node.granules());
      keep(index.put(node));
    }
    agrees(index, model);
    // Nodes in use are extents, less the one of the index.
    RC_ASSERT(nodes.size() - spare.size() + 1 >= index.free_extents() + index.granted_extents());
    RC_ASSERT(nodes.size() - spare.size() <= index.free_extents() + index.granted_extents());
  }
  for (extent_node* const node : live) keep(index.put(*node));
  RC_ASSERT(index.whole());
  RC_ASSERT(index.free_extents() == 1u);
  RC_ASSERT(index.digest() == whole);
}

}  // namespace holdfast::properties
