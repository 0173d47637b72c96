#include <sim/faults/fault_plan.hpp>

#include <holdfast/base/cancellation.hpp>

#include <algorithm>
#include <array>

namespace holdfast::sim {

namespace {

// In order of name. Every point says what its value means; a kind without a word about it takes none.
constexpr auto points = std::to_array<fault_point>({
    {"driver.open", "a driver's library is not on the machine", "absent"},
    {"fabric.delay",
     "a message leaves a host late (delay: value ns later) or is lost and sent again (loss: one retransmission "
     "time-out later)",
     "delay|loss"},
    {"fabric.partition",
     "the link between sender and receiver of this message breaks for value ns, both ways (both) or from the sender "
     "only (one_way)",
     "both|one_way"},
    {"fabric.reset", "the stream of this message breaks; both ends learn it after the usual detection time", "reset"},
    {"fabric.slow", "from this message on everything on its way to the same host takes value ns longer", "slow"},
    {"heap", "an allocation of core fails (fail: at any named site; or the name of one site)", "fail|*"},
    {"host.crash",
     "the host crashes right after this driver call began, for good (crash) or to start again under its name and "
     "address value ns later (restart)",
     "crash|restart"},
    {"host.pause", "the host's fibers stop right after this driver call began, for value ns (0: for ever)", "pause"},
    {"nic.deregister",
     "a deregistration takes value ns longer (slow), never returns (never), fails while the pages stay pinned (error) "
     "or says yes and does nothing (lie); the library answers OK to the last two",
     "slow|never|error|lie"},
    {"nic.device",
     "with one-sided lanes: the device fails for good (fatal), or its port is down for value ns (port_down; 0: for "
     "ever); passed when a GET is posted",
     "fatal|port_down"},
    {"nic.register",
     "a registration is refused for want of memory (refuse) or of a table entry (limit), takes value ns longer "
     "(delay), never returns (never), or covers one page less than asked (short)",
     "refuse|limit|delay|never|short"},
    {"pages.allocate", "the system has no pages (ENOMEM)", "refuse"},
    {"pages.tombstone", "the system cannot replace pages by zeros; the range is unchanged", "refuse"},
    {"scripted.get",
     "a GET of the scripted device ends in the call (inline), fails (failed), is refused by the call (refused), ends "
     "never but in the sweep (never), is told as of unknown fate and writes on (indeterminate), or its waiter is told "
     "and it ends later, or not (orphaned_*); value: ns by which what comes late is late",
     "inline|failed|refused|never|indeterminate|orphaned_ok|orphaned_failed|orphaned_never"},
    {"scripted.map",
     "a map of the scripted device covers more (larger) or less (short) than asked, fails (refused), comes value ns "
     "late (delayed), or is not answered while the device lives: not done (never) or done (silent)",
     "larger|short|refused|delayed|never|silent"},
    {"scripted.teardown",
     "the end of the scripted device takes value ns (slow), does not come (hang), or answers nothing (silent)",
     "slow|hang|silent"},
    {"scripted.unmap",
     "an unmap of the scripted device is confirmed value ns late (late), refused (refused), answered unknown and done "
     "or not (unknown_*), confirmed and not done (lie), or not answered while the device lives (never)",
     "late|refused|unknown_done|unknown_kept|lie|never"},
    {"suspension", "the operation of a coroutine is cancelled as it suspends; only of one that can be", "cancel"},
    {"thread.start", "the system starts no thread (EAGAIN)", "refuse"},
    {"ucp.am.error", "a send of an active message answers an error pointer (value: status, 0 = no memory)", "error"},
    {"ucp.arm.busy",
     "arming a worker answers BUSY with nothing to do (busy), fails (error: value status, 0 = I/O error), or leaves "
     "the descriptor readable for the next value looks (stuck)",
     "busy|error|stuck"},
    {"ucp.cleanup", "the end of a context takes value ns (slow) or never returns (never)", "slow|never"},
    {"ucp.ep.create", "an endpoint is refused (value: status, 0 = no memory); an accepted request is used up", "error"},
    {"ucp.ep.fail", "an endpoint fails with a time-out although the peer lives; passed when a GET is posted", "fail"},
    {"ucp.get.error", "a GET answers an error pointer (value: status, 0 = no memory)", "error"},
    {"ucp.get.inline", "a GET finishes before it returns, as over a one-sided lane", "inline"},
    {"ucp.init", "a context is refused (value: status, 0 = no device)", "error"},
    {"ucp.listener.create", "a listener is refused (value: status, 0 = busy: the port is taken)", "error"},
    {"ucp.rkey.pack", "packing a key fails (value: status, 0 = no memory)", "error"},
    {"ucp.rkey.unpack", "unpacking a key fails (value: status, 0 = unreachable)", "error"},
    {"ucp.worker.address", "a worker's address is refused (value: status, 0 = no memory)", "error"},
    {"ucp.worker.create", "a worker is refused (value: status, 0 = no memory)", "error"},
    {"ucp.worker.destroy",
     "the destruction of a worker takes value ns and progresses meanwhile (slow) or never returns (never)",
     "slow|never"},
});
static_assert(std::ranges::is_sorted(points, {}, &fault_point::name));

constexpr std::size_t no_point = points.size();

std::size_t search_point(std::string_view name) noexcept {
  const auto found = std::ranges::lower_bound(points, name, {}, &fault_point::name);
  return found != points.end() && found->name == name ? static_cast<std::size_t>(found - points.begin()) : no_point;
}

// After such a fault somebody may wait for what never comes, or not before the trouble ends, and nobody is to blame.
bool may_keep_waiting(std::string_view kind) noexcept {
  constexpr std::string_view kinds[] = {"both",  "crash",          "hang",  "never",   "one_way",
                                        "pause", "orphaned_never", "reset", "restart", "silent"};
  return std::ranges::find(kinds, kind) != std::end(kinds);
}

// Whoever passes a point names it by a literal, with every call of a driver: where the literal lies tells the point.
std::size_t find_point(std::string_view name) noexcept {
  struct known {
    const char* literal = nullptr;
    std::size_t point = no_point;
  };
  static std::array<known, 256> cache;
  known& slot = cache[(reinterpret_cast<std::uintptr_t>(name.data()) * 0x9e3779b97f4a7c15u) >> 56];
  if (slot.literal != name.data() || slot.point == no_point || points[slot.point].name.size() != name.size()) {
    slot = {name.data(), search_point(name)};
  }
  return slot.point;
}

// 0: not a kind of the point; 1: named; 2: only through "*".
int match_kind(std::string_view kinds, std::string_view kind) noexcept {
  int best = 0;
  while (!kinds.empty()) {
    const std::size_t bar = kinds.find('|');
    const std::string_view one = kinds.substr(0, bar);
    if (one == kind) return 1;
    if (one == "*" && !kind.empty()) best = 2;
    if (bar == std::string_view::npos) break;
    kinds.remove_prefix(bar + 1);
  }
  return best;
}

}  // namespace

std::span<const fault_point> all_fault_points() { return points; }

fault_plan& fault_plan::of(world& w) {
  static const char key = 0;
  kernel_scope scope;
  return w.attachment<fault_plan>(&key, [&w] {
    auto made = std::make_shared<fault_plan>();
    made->cancel_at_suspensions(w);
    return made;
  });
}

std::optional<std::string> fault_plan::install(std::vector<fault> faults) {
  kernel_scope scope;
  std::vector<armed> next;
  next.reserve(faults.size());
  for (fault& f : faults) {
    const std::size_t point = search_point(f.where);
    if (point == no_point) return "unknown fault point '" + f.where + "'; see `holdfast-sim list faults`";
    if (f.what.empty()) {
      const std::string_view kinds = points[point].kinds;
      f.what = std::string(kinds.substr(0, kinds.find('|')));
    }
    const int matched = match_kind(points[point].kinds, f.what);
    if (matched == 0) {
      return "fault point '" + f.where + "' has no kind '" + f.what + "'; it has " + std::string(points[point].kinds);
    }
    if (f.nth == 0) return "fault at '" + f.where + "': passes are counted from 1";
    next.push_back({std::move(f), point, matched == 2, 0, 0});
  }
  armed_ = std::move(next);
  passes_.assign(points.size(), 0);
  return std::nullopt;
}

// Asking is allowed to anybody at any time; here it comes when the waiter has its source and not yet its canceller.
void fault_plan::cancel_at_suspensions(world& w) {
  w.on_suspension([this, &w](const char* operation, unsigned index, void* task) {
    host* const here = w.running_host();
    if (task == nullptr || here == nullptr || strike(*here, "suspension", operation) == nullptr) return;
    w.log(here, hardware_event::cancel_fired, index);
    core_scope core;
    static_cast<holdfast::cancellation*>(task)->request();
  });
}

const fault* fault_plan::strike(host& h, std::string_view point, std::string_view detail) {
  kernel_scope scope;
  const std::size_t index = find_point(point);
  world& w = h.owner();
  if (index == no_point) {
    w.violate("simulator", "fault point '" + std::string(point) + "' is not in the table");
    return nullptr;
  }
  if (passes_.empty()) passes_.assign(points.size(), 0);
  ++passes_[index];
  if (sites_ != nullptr && !w.calm()) collect(index, detail);
  const fault* chosen = nullptr;
  for (std::size_t i = 0; i < armed_.size(); ++i) {
    armed& a = armed_[i];
    if (a.point != index || (!a.what.host.empty() && a.what.host != h.name())) continue;
    if (a.by_detail && a.what.what != detail) continue;
    // A pass in the calm is none: a fault that was meant for the third pass must not be lost on the start-up's.
    if (w.calm()) continue;
    w.touch();  // which pass this is depends on the others
    ++a.passed;
    // The first in the plan's order wins; the others have seen the pass all the same.
    if (chosen != nullptr) continue;
    if (a.passed < a.what.nth || a.passed - a.what.nth >= a.what.times) continue;
    ++a.struck;
    if (may_keep_waiting(a.what.what)) w.excuse_waiting();
    w.log(&h, hardware_event::fault_fired, i, a.struck);
    chosen = &a.what;
  }
  return chosen;
}

void fault_plan::collect(std::size_t point, std::string_view detail) {
  if (match_kind(points[point].kinds, detail) != 2) {
    if (!sites_->contains(points[point].name)) sites_->emplace(points[point].name);
    return;
  }
  sites_->insert(std::string(points[point].name) + ':' + std::string(detail));
}

std::uint64_t fault_plan::passes(std::string_view point) const {
  const std::size_t index = search_point(point);
  return index == no_point || passes_.empty() ? 0 : passes_[index];
}

std::vector<fault> fault_plan::inert() const {
  std::vector<fault> result;
  for (const armed& a : armed_) {
    if (a.struck == 0) result.push_back(a.what);
  }
  return result;
}

std::vector<std::uint64_t> fault_plan::struck() const {
  std::vector<std::uint64_t> result;
  for (const armed& a : armed_) result.push_back(a.struck);
  return result;
}

}  // namespace holdfast::sim
