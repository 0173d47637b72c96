// A quarantine between fibers that admit, restate, discharge by different evidence, take out all, and look. Whatever the
// order, an entry leaves at most once for each time it came in, and the sums are those of the list.
#include <sim/scenarios/base_stage.hpp>

#include <holdfast/base/quarantine.hpp>

#include <array>

namespace holdfast::sim {

namespace {

struct kept final : quarantine_entry {};

constexpr std::size_t entry_count = 3;

class quarantine_stage : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-quarantine";
  static constexpr std::string_view scenario_text =
      "fibers admit, restate, discharge and list entries of one quarantine; each is settled once";

  explicit quarantine_stage(world& w) : base_stage(w, "base quarantine") {}

  static op draw(random_stream& random, const std::string& who, std::int64_t lane, std::int64_t step, bool extras) {
    const auto about = [&](std::string_view what, std::int64_t entry) {
      return op{who, std::string(what), {{"entry", entry}}, {}};
    };
    const auto any = static_cast<std::int64_t>(random.below(entry_count));
    // The first steps are what every plan needs to be interesting: one entry that two pieces of evidence are shown for.
    if (step == 0 && lane == 0) return about(any == 2 ? "fence" : "answer", any);
    if (step == 0 && lane == 1) return about(any == 2 ? "admit" : "complete", any == 2 ? 2 : 0);
    switch (random.below(extras ? 13 : 11)) {
      case 0: return about("answer", any);
      case 1: return about("complete", any);
      case 2:
      case 3: return {who, "terminate", {{"entry", any}, {"context", random.below(3) == 0 ? 71 : 70}}, {}};
      case 4: return {who, "terminate_all", {{"context", random.below(3) == 0 ? 71 : 70}}, {}};
      case 5: return about("begin_fence", any);
      case 6: return about("fence", 2);
      case 7: return about("admit", any);
      case 8: return about("restate", any);
      case 9: return {who, "count", {}, {}};
      case 10: return {who, "list", {}, {}};
      case 11: return {who, "abandon", {}, {}};
      default: return about("fence", any);
    }
  }

  std::optional<std::string> inspect(const op& step) const override {
    const std::int64_t entry = step.number("entry");
    if (entry < 0 || entry >= static_cast<std::int64_t>(entry_count)) return "there are the entries 0, 1 and 2";
    for (const std::string_view known : {"admit", "restate", "answer", "complete", "terminate", "terminate_all",
                                         "begin_fence", "fence", "return", "count", "list", "abandon"})
      if (step.what == known) return std::nullopt;
    return "there is no such step; there are abandon, admit, answer, begin_fence, complete, count, fence, list, "
           "restate, return, terminate, terminate_all";
  }

  void open(platform::host& on) override {
    clock_ = &on.clock();
    quarantine_.make(1, log());
    for (std::size_t i = 0; i < entry_count; ++i) {
      entries_[i].make();
      enter(i);
    }
  }

  step_result run(const std::string& who, const op& step) override {
    const auto i = static_cast<std::size_t>(step.number("entry"));
    if (step.what == "admit") return {enter(i), 0};
    if (step.what == "restate") return {restate(i), 0};
    if (step.what == "answer") return {show(i, evidence::answered(quarantine_kind::arena, 10 + i, true)), 0};
    if (step.what == "complete") return {show(i, evidence::completed(40 + i)), 0};
    const auto context = static_cast<std::uint64_t>(step.number("context", 70));
    if (step.what == "terminate")
      return {show(i, evidence::terminated(context, termination::context_destroyed, "scenario", true)), 0};
    if (step.what == "return") return {come_back(i), 0};
    if (step.what == "terminate_all") return {take_all(context), 0};
    if (step.what == "begin_fence") return {begin_fence(who, i), 0};
    if (step.what == "fence") return {show_fence(who, i), 0};
    if (step.what == "abandon") return {abandon(), 0};
    if (step.what == "count") count();
    if (step.what == "list") list();
    return {};
  }

  void lane_ended(const std::string& who) override { request_of(who).destroy(); }

  void close() override {
    count();
    list();
    const quarantine_totals sums = quarantine_->totals();
    std::uint64_t inside = 0, bytes = 0, given_up = 0;
    for (std::size_t i = 0; i < entry_count; ++i) {
      const books& b = books_[i];
      const std::uint64_t stays = b.entered - b.left - b.abandoned;
      expect(stays == (quarantine_->holds(*entries_[i]) ? 1u : 0u), "an entry leaves once for each time it entered");
      inside += stays;
      bytes += stays * terms_of(i).bytes;
      given_up += b.abandoned;
    }
    expect(sums.inside == quarantine_sum{inside, bytes}, "what is inside is what entered and did not leave");
    expect(sums.abandoned.entries == given_up, "what was given up stays counted");
    quarantine_.destroy();
    for (auto& entry : entries_) entry.destroy();
  }

 private:
  struct books {
    std::uint64_t entered = 0, left = 0, abandoned = 0;
  };

  // Two that an answer or a completion ends, and one that only fences end; the end of its context ends each.
  static quarantine_terms terms_of(std::size_t i) noexcept {
    quarantine_terms terms{.kind = i == 2 ? quarantine_kind::allocation : quarantine_kind::arena,
                           .id = 10 + i,
                           .reason = i == 2 ? quarantine_reason::owner_dropped : quarantine_reason::unmap_timeout,
                           .bytes = std::uint64_t{1} << i,
                           .context = 70 + (i & 1)};
    terms.answer = i != 2;
    terms.operation = i == 0 ? 40 : 0;
    terms.fence = i == 2;
    return terms;
  }

  bool enter(std::size_t i) {
    const bool entered = quarantine_->admit(*entries_[i], terms_of(i), clock_->now());
    books_[i].entered += entered ? 1 : 0;
    return entered;
  }
  bool restate(std::size_t i) { return quarantine_->restate(*entries_[i], quarantine_reason::unmap_unknown); }

  void settle(std::size_t i) {
    ++books_[i].left;
    const quarantine_view& left = entries_[i]->view();
    expect(left.terms.id == 10 + i && left.terms.bytes == std::uint64_t{1} << i, "what leaves is what entered");
  }
  bool show(std::size_t i, const evidence& shown) {
    const evidence_kind kind = shown.kind();
    const bool mine = quarantine_->discharge(*entries_[i], shown);
    if (!mine) return false;
    expect((terms_of(i).accepts() >> static_cast<unsigned>(kind) & 1) != 0,
           "an entry leaves on evidence that it names");
    expect(kind != evidence_kind::termination || shown.subject() == terms_of(i).context, "about its own context");
    settle(i);
    return true;
  }
  // Its context ends, and another stay begins.
  bool come_back(std::size_t i) {
    const bool left =
        show(i, evidence::terminated(terms_of(i).context, termination::context_destroyed, "scenario", true));
    const bool entered = enter(i);
    return left && entered;
  }
  bool take_all(std::uint64_t context) {
    const evidence shown = evidence::terminated(context, termination::process_ended, "scenario", true);
    quarantine_chain out;
    const std::size_t taken = quarantine_->discharge_all(shown, out);
    std::size_t found = 0;
    while (quarantine_entry* const one = out.pop_front()) {
      ++found;
      expect(one->view().terms.context == context, "what leaves was held by the context that ended");
      settle(index_of(*one));
    }
    expect(found == taken, "it answers how many it took");
    return taken != 0;
  }
  bool abandon() {
    quarantine_chain out;
    const std::size_t given_up = quarantine_->abandon_all(out);
    while (quarantine_entry* const one = out.pop_front()) ++books_[index_of(*one)].abandoned;
    return given_up != 0;
  }
  std::size_t index_of(const quarantine_entry& entry) { return static_cast<std::size_t>(entry.view().terms.id - 10); }

  // A lane keeps the request that it made last; entries may come and go until it is shown.
  bool begin_fence(const std::string& who, std::size_t i) {
    auto request = quarantine_->begin_fence(*entries_[i]);
    expect(!request || i == 2, "fences are begun for what they can end");
    if (!request) return false;
    subject<fence_request>& mine = request_of(who);
    mine.destroy();
    mine.make(std::move(*request));
    return true;
  }
  bool show_fence(const std::string& who, std::size_t i) {
    subject<fence_request>& mine = request_of(who);
    if (!mine && !begin_fence(who, i)) return false;
    const evidence shown = evidence::fences_passed(std::move(*mine), true);
    mine.destroy();
    return show(i, shown);
  }
  subject<fence_request>& request_of(const std::string& who) {
    kernel_scope kernel;
    return requests_[who];
  }

  void count() {
    const quarantine_totals sums = quarantine_->totals();
    quarantine_sum kinds, reasons;
    for (const quarantine_sum& each : sums.by_kind) {
      kinds.entries += each.entries;
      kinds.bytes += each.bytes;
    }
    for (const quarantine_sum& each : sums.by_reason) {
      reasons.entries += each.entries;
      reasons.bytes += each.bytes;
    }
    expect(sums.inside == kinds && sums.inside == reasons, "sums by kind and by reason are the sum of all");
  }
  void list() {
    std::array<quarantine_view, entry_count> seen;
    const std::size_t n = quarantine_->snapshot_into(seen);
    expect(n <= entry_count, "no entry is listed twice");
    for (std::size_t i = 1; i < n; ++i) {
      expect(seen[i - 1].stamp < seen[i].stamp, "the oldest is first");
      expect(seen[i - 1].terms.id != seen[i].terms.id, "no entry is listed twice");
    }
  }

  const platform::clock* clock_ = nullptr;
  subject<quarantine> quarantine_;
  std::array<subject<kept>, entry_count> entries_;
  std::array<books, entry_count> books_{};
  std::map<std::string, subject<fence_request>> requests_;
};

// Fences that are asked for in one stay and shown in the next prove nothing.
class stale_fences_stage final : public quarantine_stage {
 public:
  static constexpr std::string_view scenario_name = "base-stale-fences";
  static constexpr std::string_view scenario_text =
      "fences are begun for what leaves by other evidence and comes back; they may not end its next stay (BR-H99)";

  using quarantine_stage::quarantine_stage;

  static op draw(random_stream& random, const std::string& who, std::int64_t lane, std::int64_t step, bool extras) {
    const auto about_it = [&](std::string_view what) { return op{who, std::string(what), {{"entry", 2}}, {}}; };
    if (lane == 0) return about_it(step == 0 ? "begin_fence" : "fence");
    if (lane == 1 || !extras) return about_it("return");
    switch (random.below(5)) {
      case 0: return about_it("begin_fence");
      case 1: return about_it("fence");
      case 2: return about_it("admit");
      case 3: return about_it("restate");
      default: return {who, "terminate", {{"entry", 2}, {"context", 70}}, {}};
    }
  }
};

}  // namespace

void add_base_quarantine_scenarios() {
  add_scenario(std::make_unique<base_scenario<quarantine_stage>>());
  add_scenario(std::make_unique<base_scenario<stale_fences_stage>>());
}

}  // namespace holdfast::sim
