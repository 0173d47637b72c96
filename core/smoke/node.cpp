#include <holdfast/platform/abi.hpp>

#include "smoke/node.hpp"

#include <holdfast/runtime/host_device.hpp>
#include <holdfast/runtime/ucx_device.hpp>

#include <cstring>

namespace holdfast::smoke {

bool node::left_alone_ = false;

result<std::unique_ptr<node>> node::open(device_kind kind, const pinned::settings& values,
                                         const std::string& ucx_library, bool shared_memory) {
  auto made = std::make_unique<parts>();
  runtime_options options;
  options.pinned = values;
  options.recorded_events = std::size_t{1} << 16;
  options.recorded_level = event_level::trace;
  ucx_device_options ucx;
  if (!ucx_library.empty()) ucx.library = ucx_library;
  ucx.transport.shared_memory = shared_memory;
  auto opened =
      runtime::create(made->host, options, kind == device_kind::ucx ? ucx_device(std::move(ucx)) : host_device());
  if (!opened) return std::unexpected(opened.error());
  made->core.emplace(std::move(*opened));
  return std::unique_ptr<node>(new node(std::move(made)));
}

node::~node() {
  if (!ended_) static_cast<void>(shut_down(std::chrono::seconds(5), patience));
  // Whatever runs in there still may use all of it.
  if (!ended_) static_cast<void>(parts_.release());
}

std::expected<node::ending, std::string> node::shut_down(steady::duration deadline, steady::duration grace) {
  awaited<result<runtime_report>> told;
  const steady::time_point began = steady::now();
  core_->async_shutdown(core_->now() + deadline, told.handler());
  if (!told.wait(deadline + grace)) {
    left_alone_ = true;
    return std::unexpected("the shutdown did not return " +
                           std::to_string(std::chrono::duration_cast<std::chrono::seconds>(grace).count()) +
                           " s after its deadline");
  }
  ended_ = true;
  if (!told.answer()) return std::unexpected(sentence(told.answer().error()));
  return ending{*told.answer(), (told.when() - began).count()};
}

std::expected<pinned::buffer, std::string> node::alloc(std::uint64_t bytes, pinned::alloc_options how) {
  awaited<result<pinned::buffer>> told;
  memory().async_alloc(bytes, how, told.handler());
  if (!told.wait(patience)) return std::unexpected("an allocation was not answered");
  if (!told.answer()) return std::unexpected(sentence(told.answer().error()));
  return std::move(*told.answer());
}

std::string sentence(const error& why) {
  std::string text = why.text();
  // The advice is for programs that go on.
  if (const std::size_t advice = text.rfind("; "); advice != text.npos) text.resize(advice);
  // An error holds the beginning of a provider's words.
  if (std::strlen(why.words) + 1 == sizeof why.words) text += "...";
  return text;
}

}  // namespace holdfast::smoke
