#include <holdfast/platform/abi.hpp>

#include <holdfast/runtime/host_device.hpp>

#include <holdfast/backends/host/host_backend.hpp>
#include <holdfast/platform/heap_fault.hpp>

#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

class registering_host final : public device {
 public:
  explicit registering_host(std::unique_ptr<host_backend> backend) noexcept : backend_(std::move(backend)) {}
  pinned::backend& backend() noexcept override { return *backend_; }
  void begin_end(platform::time_point, std::move_only_function<void(result<device_end>)> told) override {
    result<witness> gone = backend_->close();
    if (!gone) return told(std::unexpected(gone.error()));
    device_end end;
    end.proof.emplace(std::move(*gone));
    told(std::move(end));
  }

 private:
  std::unique_ptr<host_backend> backend_;
};

}  // namespace

device_factory host_device(const memory_calls& calls) {
  return [&calls](platform::host&, event_log& log, std::uint64_t incarnation) -> result<std::unique_ptr<device>> {
    result<std::unique_ptr<host_backend>> backend = host_backend::create(log, incarnation, calls);
    if (!backend) return std::unexpected(backend.error());
    if (platform::heap_fault("runtime.device")) return fail(error_code::out_of_memory, "runtime.create");
    std::unique_ptr<device> made(new (std::nothrow) registering_host(std::move(*backend)));
    if (!made) return fail(error_code::out_of_memory, "runtime.create");
    return made;
  };
}

}  // namespace holdfast::inline HOLDFAST_ABI
