// Which synchronization objects more than one fiber touches.
//
// Why this exists: before an operation on an object that no other fiber ever touches nothing can be interrupted that could
// not be interrupted as well at the next shared one. Nor before a lock is given back: who wants it waits, and what he
// does before that does not depend on the lock, unless he tries it. A search of all schedules need not stop there. Whether an object is
// shared is learned from the runs: as long as every run agrees, nothing was missed; when one shows a new shared object,
// the search begins again and stops there too.
//
// How objects are named across runs: by who made them, their kind, and how many of that kind he had made. A name may mean
// different objects in different runs; it is shared as soon as one of them was.
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
  /// A fiber is about to operate on it, or to try a lock that may be held. 0 is no object.
  void touched(std::uint32_t object, std::uint32_t fiber, bool tries) {
    if (object == 0 || object >= objects_.size()) return;
    seen& o = objects_[object];
    if (tries) learn_tried(o);
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
  /// What it is called in every run; 0 is no object.
  std::uint64_t name_of(std::uint32_t object) const noexcept {
    return object < objects_.size() ? objects_[object].name : 0;
  }
  /// Nobody finds out whether this lock is held other than by waiting for it.
  bool is_never_tried(std::uint32_t object) const noexcept {
    return object != 0 && object < objects_.size() && !objects_[object].known_tried;
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
    bool known_tried = false;
  };
  struct maker {
    std::uint64_t hash;
    std::uint32_t made;
  };
  void learn(seen& o);
  void learn_tried(seen& o);

  std::vector<seen> objects_;
  std::vector<maker> makers_;
  std::unordered_set<std::uint64_t> shared_, tried_;  // never iterated
  bool learned_ = false;
};

}  // namespace holdfast::sim
