#include <holdfast/platform/abi.hpp>

#include <tests/processes/sequence.hpp>

#include <algorithm>
#include <random>
#include <ranges>
#include <utility>

namespace holdfast::testing::processes {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using condition = fleet::condition;

// A link that is cut for longer delays the system's own sending again beyond every bound here.
constexpr milliseconds cut_max = 1'500ms;

class troubles {
 public:
  troubles(const sequence& what, sequence_result& out)
      : what_(what), out_(out), random_(what.shape.seed), nodes_(what.shape) {}
  void run();

 private:
  struct cut_link {
    unsigned from, to;
    steady::time_point heal_at;
  };
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  unsigned any() { return static_cast<unsigned>(below(nodes_.size())); }
  void count(const char* name, std::uint64_t by = 1) { out_.counts[name] += by; }
  void start(unsigned node);
  void one_trouble();
  void cut();
  void heal_due(bool all);
  void make_well();
  void check_books();
  void end_all();
  bool well() const { return nodes_.failures().empty(); }

  const sequence& what_;
  sequence_result& out_;
  std::mt19937_64 random_;
  fleet nodes_;
  std::vector<cut_link> cuts_;
};

void troubles::start(unsigned node) {
  if (nodes_.state(node) != condition::absent) return;
  if (!nodes_.start(node)) return;
  nodes_.tell(node, "traffic on");
  count("starts");
}

void troubles::cut() {
  const unsigned from = any();
  const unsigned to = (from + 1 + static_cast<unsigned>(below(nodes_.size() - 1))) % nodes_.size();
  const bool both = below(2) == 0;
  const auto heal_at = steady::now() + milliseconds(below(static_cast<std::uint64_t>(cut_max.count())));
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
    if (a == to && !both) continue;
    if (std::string wrong = what_.shape.links->cut(a, b); !wrong.empty()) nodes_.fail(std::move(wrong));
    cuts_.push_back({a, b, heal_at});
  }
  nodes_.note_loss();
  count("cuts");
}

void troubles::heal_due(bool all) {
  std::erase_if(cuts_, [&](const cut_link& one) {
    if (!all && steady::now() < one.heal_at) return false;
    if (std::string wrong = what_.shape.links->heal(one.from, one.to); !wrong.empty()) nodes_.fail(std::move(wrong));
    return true;
  });
}

void troubles::one_trouble() {
  const unsigned node = any();
  const condition now = nodes_.state(node);
  const auto name = [this](unsigned of) {
    const peer_id& who = nodes_.offered(of).who;
    return std::to_string(who.worker_id) + ' ' + std::to_string(who.incarnation);
  };
  switch (below(20)) {
    case 0:
    case 1:
    case 2:
      if (now == condition::absent) return start(node);
      nodes_.kill(node);
      return count("kills");
    case 3:
    case 4:
    case 5:
    case 6:
      if (now != condition::running) return;
      nodes_.stop(node);
      return count("stops");
    case 7:
    case 8:
    case 9:
    case 10:
      for (unsigned i = 0; i < nodes_.size(); ++i) nodes_.resume(i);
      return;
    case 11:
    case 12:
    case 13: return start(node);
    case 14:
      if (now != condition::running) return;
      nodes_.ask_to_end(node, false);
      return count("ends");
    case 15: {
      // Rare on purpose: each breaks connections that both sides may be served by.
      const unsigned other = any();
      if (other == node || now != condition::running || below(2) != 0) return;
      nodes_.note_loss();
      nodes_.tell(node, (below(2) == 0 ? "revoke " : "close ") + name(other));
      return count("revokes");
    }
    case 16:
      if (now != condition::running) return;
      nodes_.tell(node, "cancel");
      return;
    case 17:
      if (now == condition::running) nodes_.tell(node, "state");
      return;
    default:
      if (what_.shape.links != nullptr) cut();
  }
}

// Until every node got bytes from every other. A life that the library ends meanwhile is begun again.
//
// Through shared memory a node may stay deaf for the rest of its life: a sender takes a place in the receiver's queue
// before it copies into it, and a sender that is killed in between leaves a place that never becomes ready. Nobody else's
// message gets past it. Such a node is ended, which must go as every other end goes, and begun again; in its next life
// nobody is killed, and it must become well.
void troubles::make_well() {
  bool deaf_before = false;
  for (int tries = 0; tries < 6 && well(); ++tries) {
    heal_due(true);
    for (unsigned i = 0; i < nodes_.size(); ++i) {
      nodes_.resume(i);
      while (nodes_.state(i) == condition::ending) nodes_.listen(20ms);
      start(i);
    }
    nodes_.tell_all("traffic on");
    nodes_.tell_all("calm");
    const auto until = steady::now() + 3 * what_.shape.bound;
    bool all = true;
    std::vector<std::pair<unsigned, std::string>> deaf;
    for (unsigned i = 0; i < nodes_.size(); ++i) {
      bool calm = false;
      std::optional<std::string> stuck;
      while (!calm && !stuck && nodes_.state(i) != condition::absent && steady::now() < until) {
        calm = nodes_.answer(i, "calm", 20ms).has_value();
        if (!calm) stuck = nodes_.answer(i, "stuck", 0ms);
      }
      all = all && calm;
      if (!calm && nodes_.state(i) != condition::absent) deaf.emplace_back(i, stuck.value_or("it says nothing"));
    }
    if (all) {
      nodes_.tell_all("quiet");
      for (unsigned i = 0; i < nodes_.size(); ++i)
        all = nodes_.answer(i, "quiet", 3 * what_.shape.bound).has_value() && all;
      if (all) return;
      continue;
    }
    // Who fell meanwhile is what the others missed.
    bool fell = false;
    for (unsigned i = 0; i < nodes_.size(); ++i) fell = fell || nodes_.state(i) == condition::absent;
    if (deaf.empty() || fell) continue;
    if (!what_.shape.memory || !out_.counts.contains("kills") || std::exchange(deaf_before, true)) {
      for (const auto& [node, seen] : deaf)
        nodes_.fail("node " + std::to_string(node) +
                    ": not every neighbor answered after everything was well again: " + seen);
      return;
    }
    count("deaf");
    for (const auto& [node, seen] : deaf) nodes_.ask_to_end(node, false);
  }
  if (well()) nodes_.fail("it never became well");
}

void troubles::check_books() {
  for (unsigned i = 0; i < nodes_.size() && well(); ++i) {
    std::string last = "it does not answer";
    // A hello or a close may be under way; it is bounded like everything else.
    const auto agree = [&] {
      auto seen = nodes_.numbers(i);
      if (seen.empty()) return false;
      const std::uint64_t orphaned = seen["orphaned"];
      last.clear();
      for (const auto& [name, value] : seen) last += ' ' + name + '=' + std::to_string(value);
      // Over tcp everything is called back. The close of a parked endpoint ends with the worker, as the endpoint does.
      return seen["posted"] <= orphaned + seen["parked"] && seen["queued"] == 0 && seen["transfers"] == orphaned &&
             seen["holds"] == orphaned && (what_.shape.memory || orphaned == 0);
    };
    const auto until = steady::now() + what_.shape.bound;
    bool agreed = agree();
    for (; !agreed && nodes_.state(i) == condition::running && steady::now() < until; agreed = agree())
      nodes_.listen(20ms);
    if (!agreed) nodes_.fail("node " + std::to_string(i) + ": the books do not agree:" + last);
  }
}

void troubles::end_all() {
  std::vector<unsigned> order(nodes_.size());
  for (unsigned i = 0; i < nodes_.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random_);
  for (const unsigned i : order) {
    nodes_.ask_to_end(i, true);
    static_cast<void>(nodes_.wait_for_end(i));
  }
}

void troubles::run() {
  for (unsigned i = 0; i < nodes_.size(); ++i) start(i);
  for (const auto until = steady::now() + what_.troubles; steady::now() < until && well();) {
    one_trouble();
    heal_due(false);
    for (const auto next = steady::now() + milliseconds(below(100)); steady::now() < next && well();)
      nodes_.listen(20ms);
  }
  if (well()) make_well();
  if (well()) check_books();
  if (well()) end_all();
  out_.failures = nodes_.failures();
  for (const char* name :
       {"fetched", "failed", "cancelled", "unknown", "refused", "bytes", "connects", "ended_operations"})
    if (const auto found = nodes_.sums().find(name); found != nodes_.sums().end()) count(name, found->second);
  for (const auto& [name, times] : nodes_.fallen()) count(name.c_str(), times);
}

}  // namespace

std::string sequence_result::text() const {
  std::string out;
  for (const auto& [name, value] : counts) out += (out.empty() ? "" : ", ") + std::to_string(value) + ' ' + name;
  return out;
}

sequence_result run_sequence(const sequence& what) {
  sequence_result out;
  troubles(what, out).run();
  return out;
}

}  // namespace holdfast::testing::processes
