#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/transport/probe.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

constexpr std::size_t sizes[] = {64, std::size_t{8} << 10, std::size_t{1} << 20};

/// One answer, awaited by a thread with a deadline. Lives on the heap, because the answer may come after the wait.
template <class T>
class awaited {
 public:
  void set(T value) noexcept {
    scoped_lock lock(mutex_);
    value_.emplace(std::move(value));
    changed_.notify_all();
  }
  std::optional<T> wait(platform::time_point deadline) noexcept {
    scoped_lock lock(mutex_);
    while (!value_)
      if (!changed_.wait_until(mutex_, deadline)) break;
    return value_;
  }

 private:
  platform::mutex mutex_{lock_ranks::transport_lifecycle};
  platform::condition_variable changed_;
  std::optional<T> value_ HOLDFAST_GUARDED_BY(mutex_);
};

struct probe_map final : map_job {
  awaited<result<registered_memory>> answer;
  void mapped(const result<registered_memory>& given) noexcept override { answer.set(given); }
};

struct probe_unmap final : unmap_job {
  awaited<unmap_result> answer;
  void unmapped(unmap_result verdict) noexcept override { answer.set(verdict); }
};

struct probe_connect final : connect_request {
  awaited<result<peer_id>> answer;
  void connected(const result<peer_id>& given) noexcept override { answer.set(given); }
};

struct probe_close final : close_request {
  awaited<bool> answer;
  void closed(const result<close_answer>& given) noexcept override { answer.set(given.has_value()); }
};

struct probe_get final : transfer {
  awaited<result<void>> answer;
  void ended(transfer_outcome outcome, const error& why) noexcept override {
    answer.set(outcome == transfer_outcome::ok ? result<void>() : result<void>(std::unexpected(why)));
  }
};

std::byte pattern(std::size_t at, std::size_t size) noexcept {
  return static_cast<std::byte>((at * 131 + (at >> 8) * 7 + size) & 0xff);
}

std::unexpected<error> absent(const char* words) noexcept {
  return fail_with_words(error_code::absent, "transport.probe", words);
}

// What a probe leaves to the library because it did not answer stays allocated for ever: it may answer yet.
template <class T>
class kept_unless_answered {
 public:
  kept_unless_answered() noexcept : object_(new (std::nothrow) T) {}
  ~kept_unless_answered() {
    if (answered_) delete object_;
  }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  void submitted() noexcept { answered_ = false; }
  auto wait(platform::time_point deadline) noexcept {
    auto got = object_->answer.wait(deadline);
    answered_ = got.has_value();
    return got;
  }

 private:
  T* object_;
  bool answered_ = true;
};

struct mapped_pages {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  registered_memory memory;
};

result<mapped_pages> map_pages(engine& of, std::size_t bytes, platform::time_point deadline) noexcept {
  const std::size_t page = of.host.pages().page_size();
  mapped_pages made;
  made.bytes = (bytes + page - 1) / page * page;
  const auto base = of.host.pages().allocate(made.bytes);
  if (!base) return fail(error_code::out_of_memory, "transport.probe", 0, made.bytes);
  made.base = *base;
  kept_unless_answered<probe_map> job;
  if (!job || (job->address = made.base, job->bytes = made.bytes, job.submitted(), !of.memory.submit(*job))) {
    of.host.pages().free(made.base, made.bytes);
    return fail(error_code::out_of_memory, "transport.probe", 0, made.bytes);
  }
  const auto answer = job.wait(deadline);
  // No answer: the library is inside the registration, and the pages stay.
  if (!answer) return absent("a registration did not return in time");
  if (!*answer) {
    of.host.pages().free(made.base, made.bytes);
    return std::unexpected(answer->error());
  }
  made.memory = **answer;
  return made;
}

void unmap_pages(engine& of, const mapped_pages& pages, platform::time_point deadline) noexcept {
  kept_unless_answered<probe_unmap> job;
  if (!job) return;
  job->region = pages.memory.region;
  job.submitted();
  if (!of.memory.submit(*job)) return;
  const auto verdict = job.wait(deadline);
  if (verdict && *verdict == unmap_result::confirmed) of.host.pages().free(pages.base, pages.bytes);
}

result<void> get_once(engine& of, const peer_id& self, const mapped_pages& from, const mapped_pages& to, std::size_t size,
                      platform::time_point deadline, bool& ended) noexcept {
  for (std::size_t i = 0; i < size; ++i) from.base[i] = pattern(i, size);
  std::memset(to.base, 0, size);
  kept_unless_answered<probe_get> get;
  if (!get) return fail(error_code::out_of_memory, "transport.probe");
  get->peer = self;
  get->remote_address = reinterpret_cast<std::uint64_t>(from.base);
  get->key = from.memory.key;
  get->generation = from.memory.region;
  get->incarnation = self.incarnation;
  get->destination = to.base;
  get->bytes = size;
  get->destination_region = to.memory.region;
  of.connections.prepare(*get, of.library->get_uses_memh() ? of.memory.handle_of(to.memory.region) : nullptr);
  if (auto admitted = of.table.admit(*get, operation_kind::get, self, size); !admitted) return admitted;
  get.submitted();
  if (!of.loop.submit(*get)) return absent("the transport closed during its start");
  ended = false;
  const auto answer = get.wait(std::min(deadline, of.host.clock().now() + of.options.probe_timeout));
  if (!answer) return absent("a GET did not end in time");
  ended = true;
  if (!*answer) return fail_with_words(error_code::absent, "transport.probe", answer->error().words);
  for (std::size_t i = 0; i < size; ++i)
    if (to.base[i] != pattern(i, size)) return absent("a GET brought wrong bytes");
  return {};
}

result<void> get_all(engine& of, const peer_id& self, platform::time_point deadline) noexcept {
  std::size_t largest = 0;
  for (const std::size_t size : sizes)
    if (size <= of.options.probe_bytes_max) largest = size;
  const auto from = map_pages(of, largest, deadline);
  if (!from) return std::unexpected(from.error());
  const auto to = map_pages(of, largest, deadline);
  if (!to) {
    unmap_pages(of, *from, deadline);
    return std::unexpected(to.error());
  }
  result<void> outcome;
  bool ended = true;
  for (const std::size_t size : sizes)
    if (size <= largest && outcome) outcome = get_once(of, self, *from, *to, size, deadline, ended);
  if (ended) {
    unmap_pages(of, *from, deadline);
    unmap_pages(of, *to, deadline);
  }
  return outcome;
}

result<void> probe_over_loopback(engine& of, platform::time_point deadline) noexcept {
  kept_unless_answered<probe_connect> connect;
  if (!connect) return fail(error_code::out_of_memory, "transport.probe");
  try {
    connect->address = of.listen_address;
  } catch (const std::bad_alloc&) {
    return fail(error_code::out_of_memory, "transport.probe");
  }
  connect->expected = of.self;
  connect->loopback = true;
  connect->set = &of.connections;
  connect.submitted();
  if (!of.loop.submit(*connect)) return absent("the transport closed during its start");
  const auto self = connect.wait(deadline);
  if (!self) return absent("the process could not connect to itself in time");
  if (!*self) return fail_with_words(error_code::absent, "transport.probe", self->error().words);

  const result<void> outcome = get_all(of, **self, deadline);

  kept_unless_answered<probe_close> close;
  if (close) {
    close->peer = **self;
    close->deadline = of.host.clock().now() + of.options.close_timeout;
    close->set = &of.connections;
    close.submitted();
    if (of.loop.submit(*close)) static_cast<void>(close.wait(deadline + of.options.close_timeout));
  }
  return outcome;
}

}  // namespace

result<void> probe_gets(engine& of, platform::time_point deadline) noexcept {
  if (of.options.probe_bytes_max < sizes[0]) return absent("probe_bytes_max is below the smallest GET of the probe");
  of.connections.allow_loopback(true);
  auto outcome = probe_over_loopback(of, deadline);
  of.connections.allow_loopback(false);
  return outcome;
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
