// An extent index under its owner's lock, as an arena uses it: fibers take and put, no granule is granted twice.
#include <sim/scenarios/base_stage.hpp>

#include <holdfast/base/extent_index.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace holdfast::sim {

namespace {

constexpr std::uint32_t granules = 16;

class extent_stage final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-extent";
  static constexpr std::string_view scenario_text = "fibers take and put ranges of one extent index under its lock";

  explicit extent_stage(world& w) : base_stage(w, "base extent index") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t, std::int64_t step, bool) {
    if (step > 0 && random.below(2) == 0) return {who, "put", {}, {}};
    return {who, "take", {{"granules", static_cast<std::int64_t>(random.between(1, 9))}}, {}};
  }

  std::optional<std::string> inspect(const op& step) const override {
    if (step.what == "put") return std::nullopt;
    if (step.what != "take") return "there is no such step; there are put, take";
    if (const std::int64_t n = step.number("granules"); n < 1 || n > granules) return "granules is not in 1..16";
    return std::nullopt;
  }

  void open(platform::host&) override {
    guard_.make(lock_ranks::pinned_suballocator);
    index_.make(granules);
    digest_ = index_->digest();
  }

  step_result run(const std::string& who, const op& step) override {
    if (step.what == "put") {
      put(who);
      return {};
    }
    const auto wanted = static_cast<std::uint32_t>(step.number("granules"));
    extent_node* const node = new_node();
    scoped_lock lock(*guard_);
    const std::uint32_t largest = index_->largest_free();
    const auto taken = index_->take(wanted, *node);
    keep(taken.spare);
    expect(taken.granted == (largest >= wanted), "what fits is granted");
    if (!taken.granted) {
      keep(node);
      return {false, 1};
    }
    mark(*node, true);
    kernel_scope kernel;
    live_[who].push_back(node);
    return {};
  }

  void lane_ended(const std::string& who) override {
    while (put(who)) {
    }
  }

  void close() override {
    expect(index_->whole() && index_->free_extents() == 1 && index_->consistent(), "all is one free range again");
    expect(index_->digest() == digest_, "the digest is what it was");
    index_.destroy();
    guard_.destroy();
    kernel_scope kernel;
    nodes_.clear();
  }

 private:
  extent_node* new_node() {
    kernel_scope kernel;
    if (spare_.empty()) {
      nodes_.push_back(std::make_unique<extent_node>());
      return nodes_.back().get();
    }
    extent_node* const node = spare_.back();
    spare_.pop_back();
    return node;
  }
  void keep(extent_node* chain) {
    kernel_scope kernel;
    while (chain != nullptr) {
      extent_node* const next = chain->next_spare();
      spare_.push_back(chain);
      chain = next;
    }
  }
  bool put(const std::string& who) {
    extent_node* node = nullptr;
    {
      kernel_scope kernel;
      auto& mine = live_[who];
      if (mine.empty()) return false;
      node = mine.back();
      mine.pop_back();
    }
    scoped_lock lock(*guard_);
    mark(*node, false);
    keep(index_->put(*node));
    expect(index_->consistent(), "the structure holds its rules");
    return true;
  }
  void mark(const extent_node& node, bool granted) {
    expect(node.offset() + node.granules() <= granules, "a range lies inside");
    for (std::uint32_t i = node.offset(); i < std::min(node.offset() + node.granules(), granules); ++i) {
      expect(granted_[i] != granted, "a granule is granted to one at a time");
      granted_[i] = granted;
    }
  }

  subject<platform::mutex> guard_;
  subject<extent_index> index_;
  std::uint64_t digest_ = 0;
  std::array<bool, granules> granted_{};
  std::vector<std::unique_ptr<extent_node>> nodes_;
  std::vector<extent_node*> spare_;
  std::map<std::string, std::vector<extent_node*>> live_;
};

}  // namespace

void add_base_extent_scenario() { add_scenario(std::make_unique<base_scenario<extent_stage>>()); }

}  // namespace holdfast::sim
