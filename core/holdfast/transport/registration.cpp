#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/transport/registration.hpp>

#include <iterator>
#include <new>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::transport {

void map_job::perform(registration& by) noexcept { by.do_map(*this); }
void map_job::give_up(registration&) noexcept { mapped(fail(error_code::shutting_down, "transport.map")); }
void unmap_job::perform(registration& by) noexcept { by.do_unmap(*this); }
// What was asked for before the end is still done: the context is there until everything is unmapped.
void unmap_job::give_up(registration& by) noexcept { by.do_unmap(*this); }
void errand::perform(registration&) noexcept { run(); }
void errand::give_up(registration&) noexcept { run(); }

result<void> registration::start() noexcept {
  try {
    auto started = platform::thread::start("hf-register", [this] { body(); });
    if (!started)
      return fail(error_code::limit_exceeded, "transport.thread", static_cast<std::uint64_t>(started.error()));
    thread_ = std::move(*started);
    return {};
  } catch (const std::bad_alloc&) {
    return fail(error_code::out_of_memory, "transport.thread");
  }
}

bool registration::push(registration_job& job, bool first) noexcept {
  scoped_lock lock(mutex_);
  if (finishing_ || standing_down_) return false;
  queue& to = first ? unmaps_ : maps_;
  job.next_job = nullptr;
  (to.last != nullptr ? to.last->next_job : to.first) = &job;
  to.last = &job;
  changed_.notify_all();
  return true;
}

registration_job* registration::pop(queue& from) noexcept {
  registration_job* const job = from.first;
  if (job != nullptr) {
    from.first = job->next_job;
    if (from.first == nullptr) from.last = nullptr;
  }
  return job;
}

void registration::body() noexcept {
  for (;;) {
    registration_job* job = nullptr;
    bool last_order = false;
    {
      scoped_lock lock(mutex_);
      for (;;) {
        if (standing_down_) {
          left_ = true;
          changed_.notify_all();
          return;
        }
        job = pop(unmaps_);
        if (job == nullptr) job = pop(maps_);
        if (job != nullptr || finishing_) break;
        changed_.wait(mutex_);
      }
      last_order = finishing_;
    }
    if (job == nullptr) break;
    if (last_order)
      job->give_up(*this);
    else
      job->perform(*this);
  }
  close_down();
}

void registration::do_map(map_job& job) noexcept {
  if (platform::heap_fault("transport.map"))
    return job.mapped(fail(error_code::out_of_memory, "transport.map", 0, job.bytes));
  auto made = wire_.map(job.address, job.bytes);
  if (stood_down()) return;
  if (!made) return job.mapped(std::unexpected(made.error()));
  registered_memory memory{0, made->address, made->bytes, made->key};
  bool kept = true;
  {
    scoped_lock lock(mutex_);
    try {
      regions_.emplace(last_region_ + 1, made->region);
      memory.region = ++last_region_;
    } catch (const std::bad_alloc&) {
      kept = false;
    }
  }
  if (kept) return job.mapped(memory);
  static_cast<void>(wire_.unmap(made->region));
  job.mapped(fail(error_code::out_of_memory, "transport.map", 0, job.bytes));
}

void registration::do_unmap(unmap_job& job) noexcept {
  wire_region handle = nullptr;
  {
    scoped_lock lock(mutex_);
    const auto found = regions_.find(job.region);
    if (found != regions_.end()) {
      handle = found->second;
      regions_.erase(found);
    }
  }
  // A number that was unmapped before, or was never issued, must not reach anybody else's registration.
  if (handle == nullptr) return job.unmapped(unmap_result::unknown);
  const bool confirmed = wire_.unmap(handle);
  if (stood_down()) return;
  job.unmapped(confirmed ? unmap_result::confirmed : unmap_result::unknown);
}

bool registration::stood_down() noexcept {
  scoped_lock lock(mutex_);
  return standing_down_;
}

void registration::close_down() noexcept {
  std::uint64_t unconfirmed = 0;
  for (;;) {
    wire_region handle = nullptr;
    {
      scoped_lock lock(mutex_);
      if (standing_down_ || regions_.empty()) break;
      handle = regions_.begin()->second;
      regions_.erase(regions_.begin());
    }
    if (!wire_.unmap(handle)) ++unconfirmed;
  }
  if (!stood_down()) {
    wire_.close_context();
    if (!stood_down()) told_.context_closed(unconfirmed);
  }
  scoped_lock lock(mutex_);
  left_ = true;
  changed_.notify_all();
}

wire_region registration::handle_of(std::uint64_t region) const noexcept {
  scoped_lock lock(mutex_);
  const auto found = regions_.find(region);
  return found == regions_.end() ? nullptr : found->second;
}

std::uint64_t registration::regions() const noexcept {
  scoped_lock lock(mutex_);
  return regions_.size();
}

void registration::finish() noexcept {
  scoped_lock lock(mutex_);
  finishing_ = true;
  changed_.notify_all();
}

void registration::stand_down() noexcept {
  scoped_lock lock(mutex_);
  standing_down_ = true;
  changed_.notify_all();
}

bool registration::wait_left(platform::time_point deadline) noexcept {
  scoped_lock lock(mutex_);
  while (!left_)
    if (!changed_.wait_until(mutex_, deadline)) return left_;
  return true;
}

void registration::join() noexcept {
  if (thread_.joinable()) thread_.join();
}

void registration::abandon() noexcept {
  if (thread_.joinable()) thread_.abandon();
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
