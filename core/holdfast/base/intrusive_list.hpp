// A doubly linked list whose links are inside its elements.
//
// Why this exists: waiters, retiring arenas and cached frames are linked under a lock, where nothing may allocate,
// and leave from the middle in constant time.
//
// Ownership   The list owns nothing. An element is in at most one list for each tag it derives from a hook for.
// Threading   Not synchronized; the owner's lock guards list and hooks.
// Failure     Linking an element twice, or destroying one that is linked, stops the process: the list would reach
//             memory that is gone.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/stop_process.hpp>

#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI {

template <class T, class Tag>
class intrusive_list;

/// Base class of an element. `Tag` tells apart the lists that one element may be in at the same time.
template <class Tag = void>
class list_hook {
 public:
  list_hook() noexcept = default;
  list_hook(const list_hook&) = delete;
  list_hook& operator=(const list_hook&) = delete;
  bool linked() const noexcept { return next_ != nullptr; }

 protected:
  ~list_hook() {
    if (linked()) platform::stop_process("an element was destroyed while a list reaches it");
  }

 private:
  template <class, class>
  friend class intrusive_list;
  list_hook* previous_ = nullptr;
  list_hook* next_ = nullptr;
};

template <class T, class Tag = void>
class intrusive_list {
  using hook = list_hook<Tag>;

 public:
  intrusive_list() noexcept { end_.previous_ = end_.next_ = &end_; }
  ~intrusive_list() {
    if (!empty()) platform::stop_process("a list was destroyed with elements in it");
    end_.previous_ = end_.next_ = nullptr;
  }
  intrusive_list(const intrusive_list&) = delete;
  intrusive_list& operator=(const intrusive_list&) = delete;

  bool empty() const noexcept { return end_.next_ == &end_; }
  std::size_t size() const noexcept { return size_; }
  /// The list is not empty.
  T& front() noexcept { return *element(end_.next_); }
  T& back() noexcept { return *element(end_.previous_); }
  void push_back(T& item) noexcept { link(item, end_); }
  void push_front(T& item) noexcept { link(item, *end_.next_); }
  /// `item` is in this list.
  void erase(T& item) noexcept {
    hook& h = item;
    if (!h.linked()) platform::stop_process("an element was taken from a list that it is not in");
    h.previous_->next_ = h.next_;
    h.next_->previous_ = h.previous_;
    h.previous_ = h.next_ = nullptr;
    --size_;
  }
  /// The element before `item`, which is in this list; null if it is the first.
  T* before(T& item) noexcept {
    hook* const previous = static_cast<hook&>(item).previous_;
    return previous == &end_ ? nullptr : element(previous);
  }
  /// The oldest element, taken out; null if there is none.
  T* pop_front() noexcept {
    if (empty()) return nullptr;
    T& item = front();
    erase(item);
    return &item;
  }
  /// Moves everything from `other` to the end of this list, in order.
  void splice_back(intrusive_list& other) noexcept {
    if (other.empty()) return;
    hook* const first = other.end_.next_;
    hook* const last = other.end_.previous_;
    first->previous_ = end_.previous_;
    end_.previous_->next_ = first;
    last->next_ = &end_;
    end_.previous_ = last;
    other.end_.previous_ = other.end_.next_ = &other.end_;
    size_ += other.size_;
    other.size_ = 0;
  }

  /// Forward walk. The element that the iterator stands on may be erased after the iterator moved on.
  class iterator {
   public:
    explicit iterator(hook* at) noexcept : at_(at) {}
    T& operator*() const noexcept { return *element(at_); }
    T* operator->() const noexcept { return element(at_); }
    iterator& operator++() noexcept {
      at_ = at_->next_;
      return *this;
    }
    bool operator==(const iterator&) const noexcept = default;

   private:
    hook* at_;
  };
  iterator begin() noexcept { return iterator(end_.next_); }
  iterator end() noexcept { return iterator(&end_); }

 private:
  static T* element(hook* h) noexcept { return static_cast<T*>(h); }
  void link(T& item, hook& before) noexcept {
    hook& h = item;
    if (h.linked()) platform::stop_process("an element was put into two lists");
    h.previous_ = before.previous_;
    h.next_ = &before;
    before.previous_->next_ = &h;
    before.previous_ = &h;
    ++size_;
  }

  struct sentinel final : hook {};
  sentinel end_;
  std::size_t size_ = 0;
};

}  // namespace holdfast::inline HOLDFAST_ABI
