#include <holdfast/platform/abi.hpp>

#include <holdfast/runtime/ucx_device.hpp>

#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/runtime/ucx_backend.hpp>
#include <holdfast/transport/transport.hpp>

#include <new>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

class transporting_device final : public device {
 public:
  transporting_device(std::unique_ptr<transport::transport> over, platform::executor executor, event_log& log,
                      std::uint64_t address_bytes_max) noexcept
      : transport_(std::move(over)), backend_(*transport_, executor, log, address_bytes_max) {}
  pinned::backend& backend() noexcept override { return backend_; }
  transport::transport* peers() noexcept override { return transport_.get(); }
  result<void> when_failed(std::move_only_function<void()> told) noexcept override {
    return transport_->when_failed(std::move(told));
  }
  void begin_end(platform::time_point deadline, std::move_only_function<void(result<device_end>)> told) override {
    transport_->async_teardown(deadline, [told = std::move(told)](result<transport::teardown_result> ended) mutable {
      if (!ended) return told(std::unexpected(ended.error()));
      device_end end;
      if (ended->proof) end.proof.emplace(std::move(*ended->proof));
      end.operations = ended->report.operations;
      end.registrations = ended->report.registrations;
      end.unconfirmed = ended->report.unconfirmed;
      told(std::move(end));
    });
  }

 private:
  // Destroyed bottom-up: the backend before the transport it refers to.
  std::unique_ptr<transport::transport> transport_;
  ucx_backend backend_;
};

}  // namespace

device_factory ucx_device(ucx_device_options options) {
  return [options = std::move(options)](platform::host& host, event_log& log,
                                        std::uint64_t incarnation) mutable -> result<std::unique_ptr<device>> {
    auto table = ucx::load_ucp(log, options.library.c_str());
    if (!table) return std::unexpected(table.error());
    transport::settings values = options.transport;
    values.incarnation = incarnation;
    options.wire.shared_memory = values.shared_memory;
    values.destroy_is_fence = ucx::destroying_is_fence(options.wire);
    auto over = transport::transport::create(
        host, log, [&] { return ucx::make_wire(*table, log, options.wire); }, values, std::move(options.lost));
    if (!over) return std::unexpected(over.error());
    if (platform::heap_fault("runtime.device")) return fail(error_code::out_of_memory, "runtime.create");
    std::unique_ptr<device> made(
        new (std::nothrow) transporting_device(std::move(*over), host.executor(), log, values.tombstone_bytes_max));
    if (!made) return fail(error_code::out_of_memory, "runtime.create");
    return made;
  };
}

}  // namespace holdfast::inline HOLDFAST_ABI
