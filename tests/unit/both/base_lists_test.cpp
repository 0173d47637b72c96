// Intrusive lists and shared owners: what is linked, who lets go last, and what stops the process.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/intrusive_ptr.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::base_test {

namespace {

struct left {};
struct right {};
struct element : list_hook<left>, list_hook<right> {
  explicit element(int n) : number(n) {}
  int number;
};

template <class List>
std::vector<int> numbers(List& list) {
  std::vector<int> out;
  for (auto& each : list) out.push_back(each.number);
  return out;
}

struct plain : ref_counted<plain> {
  explicit plain(int& g) : gone(g) {}
  ~plain() { ++gone; }
  int& gone;
};

struct recycled : ref_counted<recycled> {
  explicit recycled(counter& b) : back(b) {}
  void last_released() noexcept { back.add(); }
  counter& back;
};

struct observed : weak_ref_counted<observed> {
  observed(counter& e, counter& d) : emptied(e), deleted(d) {}
  ~observed() { deleted.add(); }
  void last_released() noexcept { emptied.add(); }
  counter& emptied;
  counter& deleted;
};

}  // namespace

TEST(IntrusiveList, KeepsOrderAndLetsElementsLeaveFromTheMiddle) {
  run_on_side([](platform::host&) {
    element a(1), b(2), c(3);
    intrusive_list<element, left> list;
    intrusive_list<element, right> other;
    list.push_back(a);
    list.push_back(c);
    list.push_front(b);
    other.push_back(a);
    expect(numbers(list) == std::vector<int>{2, 1, 3} && list.size() == 3, "elements stand in the order asked for");
    list.erase(a);
    expect(numbers(list) == std::vector<int>{2, 3}, "an element leaves from the middle");
    expect(!static_cast<list_hook<left>&>(a).linked() && static_cast<list_hook<right>&>(a).linked(),
           "the lists of one element do not disturb each other");
    intrusive_list<element, left> more;
    more.push_back(a);
    list.splice_back(more);
    expect(numbers(list) == std::vector<int>{2, 3, 1} && more.empty() && list.size() == 3, "a list is appended whole");
    expect(list.pop_front() == &b && list.pop_front() == &c && list.pop_front() == &a, "the oldest comes first");
    expect(list.pop_front() == nullptr && list.empty(), "an empty list has none");
    other.erase(a);
  });
}

TEST(IntrusiveList, StopsTheProcessWhenALinkedElementIsDestroyed) {
  const auto seen = stop_on_side([](platform::host&) {
    intrusive_list<element, left> list;
    element gone(1);
    list.push_back(gone);
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("while a list reaches it"), std::string::npos) << seen.said;
}

TEST(IntrusiveList, StopsTheProcessWhenAnElementIsLinkedTwice) {
  const auto seen = stop_on_side([](platform::host&) {
    intrusive_list<element, left> list;
    element twice(1);
    list.push_back(twice);
    list.push_back(twice);
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("two lists"), std::string::npos) << seen.said;
}

TEST(IntrusivePtr, TheLastOwnerDeletes) {
  run_on_side([](platform::host&) {
    int gone = 0;
    auto first = adopt_new(new plain(gone));
    auto second = first;
    const intrusive_ptr<plain> third(first.get());
    expect(first->shares_observed() == 3, "three owners are counted");
    first.reset();
    second = nullptr;
    expect(gone == 0, "one owner keeps it");
    {
      const intrusive_ptr<plain> last = std::move(const_cast<intrusive_ptr<plain>&>(third));
    }
    expect(gone == 1 && !third, "the last one deletes it once");
  });
}

TEST(IntrusivePtr, TheLastOfManyThreadsIsOne) {
  run_on_side([](platform::host&) {
    for (unsigned round = 0; round < effort(2'000, 1); ++round) {
      counter back;
      recycled object(back);
      {
        auto first = adopt_new(&object);
        team others;
        for (unsigned member = 0; member < 2; ++member) others.start([owner = first]() mutable { owner.reset(); });
        first.reset();
      }
      expect(back.value() == 1, "last_released runs once");
    }
  });
}

TEST(IntrusivePtr, AWeakReferenceKeepsTheMemoryAndNotTheContent) {
  run_on_side([](platform::host&) {
    for (unsigned round = 0; round < effort(2'000, 1); ++round) {
      counter emptied;
      counter deleted;
      {
        auto strong = adopt_new(new observed(emptied, deleted));
        weak_intrusive_ptr<observed> weak(strong);
        expect(weak.lock().get() == strong.get(), "beside a strong owner it becomes one");
        team others;
        others.start([&emptied, weak] {
          const auto again = weak.lock();
          expect(!again || emptied.value() == 0, "what a strong owner sees is not emptied");
        });
        strong.reset();
        others.join();
        expect(emptied.value() == 1 && deleted.value() == 0, "emptied by the last strong owner, not yet deleted");
        expect(!weak.lock(), "nobody comes back");
      }
      expect(deleted.value() == 1, "deleted with the last weak reference");
    }
  });
}

}  // namespace holdfast::base_test
