// Loading a driver changes nothing of the process but what is asked for. The proof looks at the machine code of the
// memory functions and at the signal handlers, before UCX is loaded, after, and after a context was made with it.
#include <holdfast/platform/driver_library.hpp>

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace holdfast {
namespace {

// The third: libucs takes SIGHUP for its debug mode, whatever the second says.
constexpr std::array quiet{
    platform::environment_setting{"UCX_MEM_EVENTS", "n"},
    platform::environment_setting{"UCX_HANDLE_ERRORS", "none"},
    platform::environment_setting{"UCX_DEBUG_SIGNO", "0"},
};

// First bytes of what libucm would patch. Asked of the C library itself: a sanitizer puts functions of its own before.
std::string first_bytes() {
  void* const c_library = ::dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(c_library, nullptr);
  std::string bytes;
  for (const char* name : {"mmap", "munmap", "mremap", "madvise", "shmat", "shmdt", "sbrk", "brk"}) {
    void* const function = ::dlsym(c_library, name);
    EXPECT_NE(function, nullptr) << name;
    if (function != nullptr) bytes.append(static_cast<const char*>(function), 16);
  }
  ::dlclose(c_library);
  return bytes;
}

std::vector<void*> signal_handlers() {
  std::vector<void*> handlers;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGHUP, SIGUSR1, SIGUSR2}) {
    struct sigaction action{};
    EXPECT_EQ(::sigaction(number, nullptr, &action), 0);
    handlers.push_back(reinterpret_cast<void*>(action.sa_handler));
  }
  return handlers;
}

template <class Function>
Function* find(const platform::driver_library& library, const char* name) {
  void* const symbol = library.symbol(name);
  EXPECT_NE(symbol, nullptr) << name;
  return reinterpret_cast<Function*>(symbol);
}

TEST(DriverLibrary, LoadingUcxAndMakingAContextPatchesNothingAndFindsTheTransports) {
  const auto code_before = first_bytes();
  const auto handlers_before = signal_handlers();
  const auto library = platform::driver_library::open("libucp.so.0", quiet);
  ASSERT_TRUE(library.has_value()) << library.error();
  EXPECT_EQ(first_bytes(), code_before) << "after loading";
  EXPECT_EQ(signal_handlers(), handlers_before) << "after loading";

  const auto config_read = find<decltype(ucp_config_read)>(*library, "ucp_config_read");
  const auto config_modify = find<decltype(ucp_config_modify)>(*library, "ucp_config_modify");
  const auto config_release = find<decltype(ucp_config_release)>(*library, "ucp_config_release");
  const auto init = find<decltype(ucp_init_version)>(*library, "ucp_init_version");
  const auto cleanup = find<decltype(ucp_cleanup)>(*library, "ucp_cleanup");
  const auto worker_create = find<decltype(ucp_worker_create)>(*library, "ucp_worker_create");
  const auto worker_destroy = find<decltype(ucp_worker_destroy)>(*library, "ucp_worker_destroy");
  const auto address_of = find<decltype(ucp_worker_get_address)>(*library, "ucp_worker_get_address");
  const auto release_address = find<decltype(ucp_worker_release_address)>(*library, "ucp_worker_release_address");
  ASSERT_NE(address_of, nullptr);

  // With this transport alone a context fails unless the plugins of libuct found their own libraries.
  for (const char* transport : {"tcp", "posix", "self"}) {
    ucp_config_t* config = nullptr;
    ASSERT_EQ(config_read(nullptr, nullptr, &config), UCS_OK);
    ASSERT_EQ(config_modify(config, "TLS", transport), UCS_OK);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
    ucp_context_h context = nullptr;
    ASSERT_EQ(init(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context), UCS_OK) << transport;
    config_release(config);
    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_MULTI;
    ucp_worker_h worker = nullptr;
    ASSERT_EQ(worker_create(context, &worker_params, &worker), UCS_OK) << transport;
    ucp_address_t* address = nullptr;
    std::size_t address_bytes = 0;
    ASSERT_EQ(address_of(worker, &address, &address_bytes), UCS_OK) << transport;
    EXPECT_GT(address_bytes, 0u) << transport;
    release_address(worker, address);
    worker_destroy(worker);
    cleanup(context);
  }
  EXPECT_EQ(first_bytes(), code_before) << "after contexts lived";
  EXPECT_EQ(signal_handlers(), handlers_before) << "after contexts lived";
}

TEST(DriverLibrary, NamesOfADriverDoNotReachTheProgram) {
  const auto library = platform::driver_library::open("libucp.so.0", quiet);
  ASSERT_TRUE(library.has_value()) << library.error();
  EXPECT_NE(library->symbol("ucp_worker_progress"), nullptr);
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "ucp_worker_progress"), nullptr);
}

TEST(DriverLibrary, AMissingLibraryIsOneClearSentence) {
  const auto library = platform::driver_library::open("libholdfast-missing.so.7", {});
  ASSERT_FALSE(library.has_value());
  EXPECT_NE(library.error().find("libholdfast-missing.so.7"), std::string::npos) << library.error();
  EXPECT_NE(library.error().find("No such file"), std::string::npos) << library.error();
  EXPECT_EQ(library.error().find('\n'), std::string::npos) << library.error();
}

TEST(DriverLibrary, AFileThatIsNoLibraryIsOneClearSentence) {
  const auto library = platform::driver_library::open("/proc/self/status", {});
  ASSERT_FALSE(library.has_value());
  EXPECT_NE(library.error().find("/proc/self/status"), std::string::npos) << library.error();
}

TEST(DriverLibrary, ASettingWithoutAPossibleNameIsAnErrorAndLoadsNothing) {
  constexpr std::array wrong{platform::environment_setting{"NO=NAME", "1"}};
  const auto library = platform::driver_library::open("libucp.so.0", wrong);
  ASSERT_FALSE(library.has_value());
  EXPECT_NE(library.error().find("NO=NAME"), std::string::npos) << library.error();
}

TEST(DriverLibrary, SettingsReplaceWhatTheEmbedderHad) {
  ASSERT_EQ(::setenv("HOLDFAST_UNIT_SETTING", "theirs", 1), 0);
  EXPECT_EQ(platform::environment_value("HOLDFAST_UNIT_SETTING"), "theirs");
  constexpr std::array ours{platform::environment_setting{"HOLDFAST_UNIT_SETTING", "ours"}};
  EXPECT_FALSE(platform::driver_library::open("libholdfast-missing.so.7", ours).has_value());
  EXPECT_STREQ(::getenv("HOLDFAST_UNIT_SETTING"), "ours");
  EXPECT_EQ(platform::environment_value("HOLDFAST_UNIT_SETTING_UNSET"), "");
}

}  // namespace
}  // namespace holdfast
