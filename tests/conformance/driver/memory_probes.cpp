// Registrations, and the process around the library (F12, F16, F23, 7.1).
#include "process.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

namespace holdfast::driver_probe {

namespace {

void encloses(bench& b) {
  process p(b);
  std::byte* const base = b.pages(4 * page);
  const ucp_mem_h handle = p.map(base + 100, page);
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  require(b.ucp.ucp_mem_query(handle, &attributes) == UCS_OK, "no answer");
  const auto* const first = static_cast<std::byte*>(attributes.address);
  answer(b, first <= base + 100 && first + attributes.length >= base + 100 + page ? "encloses what was asked"
                                                                                  : "is less than what was asked");
  p.unmap(handle);
  p.end();
  b.give_back(base, 4 * page);
}

void twice(bench& b) {
  process p(b);
  std::byte* const base = b.pages(page);
  const ucp_mem_h one = p.map(base, page);
  const ucp_mem_h two = p.map(base, page);
  answer(b, one != two ? "two registrations" : "one registration");
  p.unmap(one);
  p.unmap(two);
  p.end();
  b.give_back(base, page);
}

void unmap_answers(bench& b) {
  process p(b);
  std::byte* const base = b.pages(page);
  const ucp_mem_h one = p.map(base, page);
  answer(b, b.ucp.ucp_mem_unmap(p.context, one) == UCS_OK ? "success" : "an error");
  p.end();
  b.give_back(base, page);
}

void unknown_setting(bench& b) {
  ucp_config_t* config = nullptr;
  require(b.ucp.ucp_config_read(nullptr, nullptr, &config) == UCS_OK, "no configuration");
  answer(b, b.ucp.ucp_config_modify(config, "HOLDFAST_UNHEARD_OF", "1") == UCS_OK ? "success" : "an error");
  b.ucp.ucp_config_release(config);
}

void thread_support(bench& b) {
  process p(b);
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_THREAD_MODE;
  require(b.ucp.ucp_context_query(p.context, &attributes) == UCS_OK, "no answer");
  answer(b, attributes.thread_mode == UCS_THREAD_MODE_SINGLE ? "single" : "several threads");
  p.end();
}

void version(bench& b) {
  unsigned major = 0, minor = 0, release = 0;
  b.ucp.ucp_get_version(&major, &minor, &release);
  answer(b, "%u.%u.%u", major, minor, release);
}

void only_memory(bench& b) {
  client c(b);
  process p(b, "posix,cma,self");
  const ucp_ep_h ep = p.connect_socket(b.owner_address(), b.shared.port, false);
  if (p.created != UCS_OK) {
    answer(b, "is refused");
  } else {
    outcome sent;
    p.send(ep, 7, "word", 4, sent, UCP_AM_SEND_FLAG_REPLY);
    p.progress_until([&] { return sent.ended() || p.errors != 0; }, second);
    answer(b, sent.status == UCS_OK ? "works" : "fails later");
  }
  p.destroy_worker();
  p.end();
  c.end();
}

void hooks(bench& b) {
  const auto first_bytes = [](const char* name) {
    std::array<unsigned char, 8> bytes{};
    if (void* const at = dlsym(RTLD_DEFAULT, name)) std::memcpy(bytes.data(), at, bytes.size());
    return bytes;
  };
  const auto before_map = first_bytes("mmap");
  const auto before_unmap = first_bytes("munmap");
  process p(b);
  // A jump to another place is how the library patches.
  const auto jumps = [](const std::array<unsigned char, 8>& bytes) {
    return bytes[0] == 0xe9 || (bytes[0] == 0x49 && bytes[1] == 0xbb) || (bytes[0] == 0xff && bytes[1] == 0x25);
  };
  const bool patched = before_map != first_bytes("mmap") || before_unmap != first_bytes("munmap") ||
                       jumps(first_bytes("mmap")) || jumps(first_bytes("munmap"));
  answer(b, patched ? "patched" : "not patched");
  p.end();
}

void signals(bench& b) {
  process p(b);
  bool taken = false;
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGHUP}) {
    struct sigaction now{};
    sigaction(number, nullptr, &now);
    taken = taken || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
  }
  answer(b, taken ? "taken" : "left alone");
  p.end();
}

constexpr probe probes[] = {
    {"config_unknown", "7.1", "Setting a name that does not exist answers", over_tcp, rule::same,
     "settings are checked by effect (3)", "", &unknown_setting},
    {"context_threads", "7.1", "The context's thread support:", over_tcp, rule::same, "start-up (7.1)", "",
     &thread_support},
    {"hooks", "7.1", "mmap and munmap, with UCX_MEM_EVENTS=n before loading, are", over_tcp, rule::real_only,
     "loading at run time", "", &hooks},
    {"map_encloses", "7.3", "What a registration says that it covers", over_both, rule::same, "registration (7.3)", "",
     &encloses},
    {"map_twice", "7.1", "One range mapped twice, without the registration cache, is", over_both, rule::same,
     "the books of pinned memory", "", &twice},
    {"signals", "F23", "Handlers for SIGSEGV and its like, with UCX_HANDLE_ERRORS=none before loading, are", over_tcp,
     rule::real_only, "loading at run time", "", &signals},
    {"transports_memory", "notes", "A socket connection from a context with posix, cma and self alone", through_memory,
     rule::same, "shared memory needs tcp beside it (3)", "", &only_memory},
    {"unmap", "F12", "An unmap answers", over_both, rule::same, "an unmap's verdict is assumed (7.3)", "",
     &unmap_answers},
    {"version", "F16", "The version of the library is", over_tcp, rule::same, "version gates (7.21)", "", &version},
};

}  // namespace

std::span<const probe> memory_probes() { return probes; }

}  // namespace holdfast::driver_probe
