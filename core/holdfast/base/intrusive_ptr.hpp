// Shared owners that count in the object itself, with weak references where somebody needs them.
//
// Why this exists: which of two owners lets go last decides who destroys an arena. The count is the platform's, so
// the simulator sees each release and tries both orders; std::shared_ptr hides it. Nothing is allocated beside the
// object.
//
// Ownership   `intrusive_ptr` owns a share; the last one out calls `last_released()` if T has it, else deletes the
//             object. `weak_intrusive_ptr` keeps the memory, not the content: of a `weak_ref_counted` T the last
//             strong owner calls `T::last_released()`, which gives up what the object owns; the object is deleted
//             when the last weak one is gone too.
// Threading   Counts are atomic. One pointer object is not for two threads at once.
// Failure     None. A plain `add_share` is for who already owns one; from a weak reference use `lock`.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/ref_count.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// Base of T. An object starts with one share, which `adopt_new` takes over.
template <class T>
class ref_counted {
 public:
  ref_counted(const ref_counted&) = delete;
  ref_counted& operator=(const ref_counted&) = delete;

  void add_share() noexcept { shares_.increment(); }
  void drop_share() noexcept {
    if (!shares_.decrement()) return;
    if constexpr (requires(T& t) { t.last_released(); })
      static_cast<T*>(this)->last_released();
    else
      delete static_cast<T*>(this);
  }
  /// For reports only: stale as soon as it is read.
  std::uint32_t shares_observed() const noexcept { return shares_.observed(); }

 protected:
  ref_counted() noexcept = default;
  ~ref_counted() = default;

 private:
  platform::ref_count shares_{1};
};

/// Base of a T that can be referred to weakly. T has `void last_released() noexcept`.
template <class T>
class weak_ref_counted {
 public:
  weak_ref_counted(const weak_ref_counted&) = delete;
  weak_ref_counted& operator=(const weak_ref_counted&) = delete;

  void add_share() noexcept { shares_.increment(); }
  void drop_share() noexcept {
    if (!shares_.decrement()) return;
    static_cast<T*>(this)->last_released();
    drop_weak();
  }
  bool add_share_unless_gone() noexcept { return shares_.increment_unless_zero(); }
  void add_weak() noexcept { weak_.increment(); }
  void drop_weak() noexcept {
    if (weak_.decrement()) delete static_cast<T*>(this);
  }
  std::uint32_t shares_observed() const noexcept { return shares_.observed(); }

 protected:
  weak_ref_counted() noexcept = default;
  ~weak_ref_counted() = default;

 private:
  platform::ref_count shares_{1};
  platform::ref_count weak_{1};  // all strong owners together hold one
};

struct adopt_share_t {};
/// Takes over a share that exists already instead of adding one.
inline constexpr adopt_share_t adopt_share{};

template <class T>
class intrusive_ptr {
 public:
  constexpr intrusive_ptr() noexcept = default;
  constexpr intrusive_ptr(std::nullptr_t) noexcept {}
  explicit intrusive_ptr(T* object) noexcept : object_(object) {
    if (object_ != nullptr) object_->add_share();
  }
  intrusive_ptr(T* object, adopt_share_t) noexcept : object_(object) {}
  intrusive_ptr(const intrusive_ptr& other) noexcept : intrusive_ptr(other.object_) {}
  intrusive_ptr(intrusive_ptr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  intrusive_ptr(intrusive_ptr<U> other) noexcept : object_(other.detach()) {}
  intrusive_ptr& operator=(intrusive_ptr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~intrusive_ptr() { reset(); }

  void reset() noexcept {
    if (T* const object = std::exchange(object_, nullptr)) object->drop_share();
  }
  /// Gives the share to the caller, who drops or adopts it later.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }
  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const intrusive_ptr&, const intrusive_ptr&) noexcept = default;

 private:
  T* object_ = nullptr;
};

/// The first owner of a new object; null stays null.
template <class T>
intrusive_ptr<T> adopt_new(T* object) noexcept {
  return intrusive_ptr<T>(object, adopt_share);
}

template <class T>
class weak_intrusive_ptr {
 public:
  weak_intrusive_ptr() noexcept = default;
  explicit weak_intrusive_ptr(const intrusive_ptr<T>& strong) noexcept : object_(strong.get()) {
    if (object_ != nullptr) object_->add_weak();
  }
  weak_intrusive_ptr(const weak_intrusive_ptr& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->add_weak();
  }
  weak_intrusive_ptr(weak_intrusive_ptr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  weak_intrusive_ptr& operator=(weak_intrusive_ptr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~weak_intrusive_ptr() {
    if (object_ != nullptr) object_->drop_weak();
  }

  /// A strong owner, or null once the last one let go.
  intrusive_ptr<T> lock() const noexcept {
    if (object_ == nullptr || !object_->add_share_unless_gone()) return {};
    return intrusive_ptr<T>(object_, adopt_share);
  }

 private:
  T* object_ = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI
