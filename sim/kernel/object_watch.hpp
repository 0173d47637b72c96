// Which synchronization objects more than one fiber touches.
//
// Why this exists: before an operation on an object that no other fiber ever touches nothing can be interrupted that could
// not be interrupted as well at the next shared one; a search of all schedules need not stop there. Whether an object is
// shared is learned from the runs: as long as every run agrees, nothing was missed; when one shows a new shared object,
// the search begins again and stops there too.
//
// How objects are named across runs: by who used them first, and their kind. Objects of one name are shared as soon as one
// of them was. (With a number besides, names never come to an end: which of its objects a fiber uses first differs from
// schedule to schedule, and each new name lets the search begin again.)
//
// Ownership   The search's; a world borrows it for a run.
// Threading   One OS thread, in kernel scope.
// Failure     None.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace holdfast::sim {

class object_watch {
 public:
  /// A run begins.
  void begin();
  /// Object number `objects_.size()` was made, on the fiber of that name (empty: on none).
  void made(std::string_view fiber, std::string_view kind);
  /// A fiber is about to operate on it. 0 is no object.
  void touched(std::uint32_t object, std::uint32_t fiber) {
    if (object == 0 || object >= objects_.size()) return;
    seen& o = objects_[object];
    if (o.fiber == fiber) return;
    if (o.fiber == nobody)
      o.fiber = fiber;
    else if (!o.shared)
      learn(o);
  }
  /// Nobody else touched it in any run so far, under this name.
  bool is_private(std::uint32_t object) const noexcept {
    return object != 0 && object < objects_.size() && !objects_[object].known_shared;
  }
  /// Whether something was learned since the last call.
  bool learned() noexcept;

 private:
  static constexpr std::uint32_t nobody = 0xffffffff;
  struct seen {
    std::uint64_t name = 0;
    std::uint32_t fiber = nobody;
    bool shared = false;        // in this run
    bool known_shared = false;  // when this run made it
  };
  void learn(seen& o);

  std::vector<seen> objects_;
  std::unordered_set<std::uint64_t> shared_;  // never iterated
  bool learned_ = false;
};

}  // namespace holdfast::sim
