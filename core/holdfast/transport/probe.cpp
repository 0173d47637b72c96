#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/transport/probe.hpp>

#include <holdfast/telemetry/emit.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

constexpr std::size_t sizes[] = {64, std::size_t{8} << 10, std::size_t{1} << 20};

/// One answer, awaited by a thread with a deadline.
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

/// Something that the transport answers, perhaps after the probe stopped waiting: the last of the two deletes it.
template <class T>
class shared_with_the_answer : public T {
 public:
  void leave() noexcept {
    if (parties_.decrement()) delete this;
  }

 protected:
  virtual ~shared_with_the_answer() = default;

 private:
  platform::ref_count parties_{2};
};

struct leave_it {
  template <class T>
  void operator()(T* one) const noexcept {
    one->leave();
  }
};
template <class T>
using waiting = std::unique_ptr<T, leave_it>;

/// Null if there is no memory. Both shares are the probe's until it submits.
template <class T>
waiting<T> make_waiting() noexcept {
  return waiting<T>(new (std::nothrow) T);
}
/// It could not be submitted: no answer will come.
template <class T>
void withdraw(waiting<T>& one) noexcept {
  one->leave();
}

class probe_connect final : public shared_with_the_answer<connect_request> {
 public:
  awaited<result<peer_id>> answer;
  void connected(const result<peer_id>& given) noexcept override {
    answer.set(given);
    leave();
  }
};

class probe_close final : public shared_with_the_answer<close_request> {
 public:
  awaited<bool> answer;
  void closed(const result<close_answer>& given) noexcept override {
    answer.set(given.has_value());
    leave();
  }
};

std::byte pattern(std::size_t at, std::size_t size) noexcept {
  return static_cast<std::byte>((at * 131 + (at >> 8) * 7 + size) & 0xff);
}

std::unexpected<error> absent(const char* words) noexcept {
  return fail_with_words(error_code::absent, "transport.probe", words);
}

/// Registered pages. Shared by the probe and by what may still use them; the last one has them unmapped, and they are
/// freed when that is confirmed. If a read of them was asked for and not answered, it may still come: then the address
/// stays, as that of an arena does (TP-I26).
class probe_pages final : private map_job, private unmap_job {
 public:
  static result<intrusive_ptr<probe_pages>> map(engine& of, std::size_t bytes, platform::time_point deadline) noexcept;

  std::byte* base() const noexcept { return address; }
  const registered_memory& memory() const noexcept { return memory_; }

  /// A GET from here ended otherwise than by its bytes. To be called with a share.
  void expect_late_reads() noexcept { read_late_ = true; }

  void add_share() noexcept { shares_.increment(); }
  void drop_share() noexcept;

 private:
  explicit probe_pages(engine& of) noexcept : of_(of) {}
  ~probe_pages() = default;
  void mapped(const result<registered_memory>& given) noexcept override;
  void unmapped(unmap_result verdict) noexcept override;
  void free() noexcept;

  engine& of_;
  platform::ref_count shares_{1};
  registered_memory memory_;
  bool read_late_ = false;
  awaited<result<registered_memory>> answer_;
};

result<intrusive_ptr<probe_pages>> probe_pages::map(engine& of, std::size_t bytes,
                                                    platform::time_point deadline) noexcept {
  const std::size_t page = of.host.pages().page_size();
  auto* const made = new (std::nothrow) probe_pages(of);
  if (made == nullptr) return fail(error_code::out_of_memory, "transport.probe", 0, sizeof(probe_pages));
  made->map_job::bytes = (bytes + page - 1) / page * page;
  const auto base = of.host.pages().allocate(made->map_job::bytes);
  if (!base) {
    delete made;
    return fail(error_code::out_of_memory, "transport.probe", 0, bytes);
  }
  made->address = *base;
  const intrusive_ptr<probe_pages> owned(made, adopt_share);
  made->add_share();  // the job's
  if (!of.memory.submit(static_cast<map_job&>(*made))) {
    made->drop_share();
    return absent("the transport closed during its start");
  }
  const auto answer = made->answer_.wait(deadline);
  if (!answer) return absent("a registration did not return in time");
  if (!*answer) return std::unexpected(answer->error());
  return owned;
}

void probe_pages::mapped(const result<registered_memory>& given) noexcept {
  if (given) memory_ = *given;
  answer_.set(given);
  drop_share();
}

void probe_pages::drop_share() noexcept {
  if (!shares_.decrement()) return;
  if (memory_.region == 0) return free();
  region = memory_.region;
  if (of_.memory.submit(static_cast<unmap_job&>(*this))) return;
  // Refused only by a transport that ended, which unmapped everything itself; without its word the pages stay.
  emit::probe_pages_leaked(of_.log, map_job::bytes);
  delete this;
}

void probe_pages::unmapped(unmap_result verdict) noexcept {
  if (verdict == unmap_result::confirmed) free();
}

void probe_pages::free() noexcept {
  if (!read_late_)
    of_.host.pages().free(address, map_job::bytes);
  else if (!of_.host.pages().tombstone(address, map_job::bytes))
    emit::probe_pages_leaked(of_.log, map_job::bytes);
  delete this;
}

// A second registration of a range that is registered already: compared with the first, and given back at once. It keeps
// the pages until it is known to be gone, whoever waits.
class probe_again final : public shared_with_the_answer<map_job>, private unmap_job {
 public:
  engine* of = nullptr;
  intrusive_ptr<probe_pages> pages;
  awaited<bool> answer;

  void mapped(const result<registered_memory>& given) noexcept override {
    if (!given) return conclude(false, true);
    differs_ = of->library->distinct(of->memory.handle_of(pages->memory().region), of->memory.handle_of(given->region));
    region = given->region;
    if (!of->memory.submit(static_cast<unmap_job&>(*this))) conclude(false, false);
  }

 private:
  void unmapped(unmap_result verdict) noexcept override {
    const bool gone = verdict == unmap_result::confirmed;
    conclude(differs_ && gone, gone);
  }
  void conclude(bool two, bool gone) noexcept {
    if (!gone) {
      emit::probe_pages_leaked(of->log, map_job::bytes);
      static_cast<void>(pages.detach());
    }
    pages.reset();
    answer.set(two);
    leave();
  }
  bool differs_ = false;
};

/// Whether a second registration of a range is one of its own. A cache inside the library would answer with the first.
bool registered_twice_is_two(engine& of, const intrusive_ptr<probe_pages>& first, std::size_t bytes,
                             platform::time_point deadline) noexcept {
  auto again = make_waiting<probe_again>();
  if (again == nullptr) return false;
  again->of = &of;
  again->pages = first;
  again->address = first->base();
  again->map_job::bytes = bytes;
  if (!of.memory.submit(static_cast<map_job&>(*again))) {
    again->pages.reset();
    withdraw(again);
    return false;
  }
  return again->answer.wait(deadline).value_or(false);
}

class probe_get final : public shared_with_the_answer<transfer> {
 public:
  // The bytes come as long as the GET has not ended, whoever waits.
  intrusive_ptr<probe_pages> from;
  intrusive_ptr<probe_pages> to;
  // What arrives over the control connection says nothing about a lane through memory.
  bool through_memory = false;
  awaited<result<void>> answer;
  void ended(transfer_outcome outcome, const error& why) noexcept override {
    if (outcome != transfer_outcome::ok) from->expect_late_reads();
    from.reset();
    to.reset();
    if (outcome != transfer_outcome::ok)
      answer.set(std::unexpected(why));
    else if (through_memory && !went_through_memory())
      answer.set(absent("there is no endpoint through shared memory"));
    else
      answer.set({});
    leave();
  }
};

result<void> get_once(engine& of, const peer_id& self, const intrusive_ptr<probe_pages>& from,
                      const intrusive_ptr<probe_pages>& to, std::size_t size, bool control_only,
                      platform::time_point deadline) noexcept {
  for (std::size_t i = 0; i < size; ++i) from->base()[i] = pattern(i, size);
  std::memset(to->base(), 0, size);
  auto get = make_waiting<probe_get>();
  if (get == nullptr) return fail(error_code::out_of_memory, "transport.probe", 0, sizeof(probe_get));
  get->from = from;
  get->to = to;
  get->through_memory = !control_only;
  get->peer = self;
  get->remote_address = reinterpret_cast<std::uint64_t>(from->base());
  get->key = from->memory().key;
  get->generation = from->memory().region;
  get->incarnation = self.incarnation;
  get->destination = to->base();
  get->bytes = size;
  get->destination_region = to->memory().region;
  of.connections.prepare(*get, of.library->get_uses_memh() ? of.memory.handle_of(to->memory().region) : nullptr,
                         control_only);
  if (auto admitted = of.table.admit(*get, operation_kind::get, self, size); !admitted) {
    withdraw(get);
    return admitted;
  }
  if (!of.loop.submit(*get)) {
    of.table.retract(*get);
    withdraw(get);
    return absent("the transport closed during its start");
  }
  const auto answer = get->answer.wait(std::min(deadline, of.host.clock().now() + of.options.probe_timeout));
  if (!answer) return absent("transport.probe_timeout: a GET did not end in time");
  if (!*answer) return fail_with_words(error_code::absent, "transport.probe", answer->error().words);
  for (std::size_t i = 0; i < size; ++i)
    if (to->base()[i] != pattern(i, size)) return absent("transport.transports: a GET brought wrong bytes");
  return {};
}

result<void> get_all(engine& of, const peer_id& self, bool control_only, platform::time_point deadline) noexcept {
  std::size_t largest = 0;
  for (const std::size_t size : sizes)
    if (size <= of.options.probe_bytes_max) largest = size;
  const auto from = probe_pages::map(of, largest, deadline);
  if (!from) return std::unexpected(from.error());
  const auto to = probe_pages::map(of, largest, deadline);
  if (!to) return std::unexpected(to.error());
  for (const std::size_t size : sizes) {
    if (size > largest) break;
    if (control_only && size == sizes[0]) {
      of.found.registrations_distinct = registered_twice_is_two(of, *from, largest, deadline);
      if (!of.found.registrations_distinct)
        emit::setting_without_effect(of.log, static_cast<std::uint64_t>(setting_number::registration_cache));
    }
    if (auto outcome = get_once(of, self, *from, *to, size, control_only, deadline); !outcome) return outcome;
  }
  return {};
}

result<void> probe_over_loopback(engine& of, std::optional<result<void>>& shares_memory,
                                 platform::time_point deadline) noexcept {
  auto connect = make_waiting<probe_connect>();
  if (connect == nullptr) return fail(error_code::out_of_memory, "transport.probe", 0, sizeof(probe_connect));
  try {
    connect->address = of.listen_address;
  } catch (const std::bad_alloc&) {
    withdraw(connect);
    return fail(error_code::out_of_memory, "transport.probe");
  }
  connect->expected = of.self;
  connect->loopback = true;
  connect->set = &of.connections;
  if (!of.loop.submit(*connect)) {
    withdraw(connect);
    return absent("the transport closed during its start");
  }
  const auto self = connect->answer.wait(deadline);
  if (!self) return absent("transport.startup_timeout: no connection to itself in time");
  if (!*self) return fail_with_words(error_code::absent, "transport.probe", self->error().words);

  const result<void> outcome = get_all(of, **self, true, deadline);
  if (outcome && shares_memory) *shares_memory = get_all(of, **self, false, deadline);

  auto close = make_waiting<probe_close>();
  if (close == nullptr) return outcome;
  close->peer = **self;
  close->deadline = of.host.clock().now() + of.options.close_timeout;
  close->set = &of.connections;
  if (of.loop.submit(*close))
    static_cast<void>(close->answer.wait(deadline + of.options.close_timeout));
  else
    withdraw(close);
  return outcome;
}

}  // namespace

result<void> probe_gets(engine& of, std::optional<result<void>>& shares_memory,
                        platform::time_point deadline) noexcept {
  if (of.options.probe_bytes_max < sizes[0]) {
    // What was not tried is not there.
    shares_memory.reset();
    return absent("probe_bytes_max is below the smallest GET of the probe");
  }
  of.connections.allow_loopback(true);
  of.connections.share_memory(shares_memory.has_value());
  auto outcome = probe_over_loopback(of, shares_memory, deadline);
  of.connections.allow_loopback(false);
  if (!outcome) shares_memory.reset();
  of.connections.share_memory(shares_memory && *shares_memory);
  return outcome;
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
