#include <holdfast/platform/abi.hpp>

#include "tool/machine.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <thread>

namespace holdfast::tool {

namespace {

namespace fs = std::filesystem;

std::uint64_t limit_bytes(rlim_t limit) noexcept { return limit == RLIM_INFINITY ? UINT64_MAX : limit; }

std::string line_in(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

// The number behind `prefix` in a name, "node3", "hugepages-2048kB".
std::optional<std::uint64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::uint64_t value = 0;
  const auto read = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), value);
  return read.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

/// What a directory holds, in the order of names; empty if there is none.
std::vector<fs::path> entries(const char* directory) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (fs::directory_iterator at(directory, ignored), end; !ignored && at != end; at.increment(ignored))
    out.push_back(at->path());
  std::ranges::sort(out);
  return out;
}

// "Node 0 MemTotal:       24576000 kB"
std::uint64_t node_bytes(const fs::path& node, std::string_view what) {
  std::ifstream in(node / "meminfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(what);
    if (at == line.npos) continue;
    return std::strtoull(line.c_str() + at + what.size(), nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace

lock_limits locked_memory_limits() noexcept {
  rlimit found{};
  if (getrlimit(RLIMIT_MEMLOCK, &found) != 0) return {};
  return {limit_bytes(found.rlim_cur), limit_bytes(found.rlim_max)};
}

std::optional<bool> may_lock_beyond_limits() {
  constexpr unsigned ipc_lock = 14;  // CAP_IPC_LOCK
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> ipc_lock & 1) != 0;
  return std::nullopt;
}

operating_system system_name() {
  utsname found{};
  if (uname(&found) != 0) return {};
  return {std::string(found.sysname) + " " + found.release, found.machine};
}

std::uint64_t processors() { return std::thread::hardware_concurrency(); }

std::uint64_t memory_bytes() {
  struct sysinfo found{};
  return sysinfo(&found) == 0 ? std::uint64_t{found.totalram} * found.mem_unit : 0;
}

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

mapping_count mappings() {
  mapping_count out;
  std::ifstream in("/proc/self/maps");
  for (std::string line; std::getline(in, line);) ++out.in_use;
  out.limit = number_in("/proc/sys/vm/max_map_count");
  return out;
}

std::vector<numa_node> numa_nodes() {
  std::vector<numa_node> out;
  for (const fs::path& at : entries("/sys/devices/system/node"))
    if (const auto id = number_after(at.filename().native(), "node"))
      out.push_back({*id, line_in(at / "cpulist"), node_bytes(at, "MemTotal:"), node_bytes(at, "MemFree:")});
  std::ranges::sort(out, {}, &numa_node::id);
  return out;
}

std::vector<huge_page_pool> huge_pages() {
  std::vector<huge_page_pool> out;
  for (const fs::path& at : entries("/sys/kernel/mm/hugepages"))
    if (const auto kib = number_after(at.filename().native(), "hugepages-"))
      out.push_back(
          {*kib * 1024, number_in(at / "nr_hugepages").value_or(0), number_in(at / "free_hugepages").value_or(0)});
  std::ranges::sort(out, {}, &huge_page_pool::page_bytes);
  return out;
}

std::string transparent_huge_pages() {
  const std::string line = line_in("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = line.find('['), close = line.find(']');
  return open == line.npos || close == line.npos || close < open ? "" : line.substr(open + 1, close - open - 1);
}

bool pages_can_be_kept_from_children() noexcept {
  const std::size_t bytes = page_bytes();
  void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const bool kept = ::madvise(page, bytes, MADV_DONTFORK) == 0;
  ::munmap(page, bytes);
  return kept;
}

std::vector<signal_owner> signal_owners() {
  constexpr std::pair<int, const char*> asked[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGHUP, "SIGHUP"}};
  std::vector<signal_owner> out;
  for (const auto& [number, name] : asked) {
    struct sigaction now{};
    std::string owner = "unknown";
    if (::sigaction(number, nullptr, &now) == 0) {
      void* const handler = (now.sa_flags & SA_SIGINFO) != 0 ? reinterpret_cast<void*>(now.sa_sigaction)
                                                             : reinterpret_cast<void*>(now.sa_handler);
      Dl_info found{};
      if (handler == reinterpret_cast<void*>(SIG_DFL))
        owner = "default";
      else if (handler == reinterpret_cast<void*>(SIG_IGN))
        owner = "ignored";
      else if (::dladdr(handler, &found) != 0 && found.dli_fname != nullptr)
        owner = found.dli_fname;
    }
    out.push_back({name, std::move(owner)});
  }
  return out;
}

std::vector<nic> nics() {
  std::vector<nic> out;
  for (const fs::path& at : entries("/sys/class/infiniband")) {
    nic device{at.filename().native(), line_in(at / "fw_ver"), {}};
    for (const fs::path& port : entries((at / "ports").c_str())) {
      // "4: ACTIVE"
      const std::string state = line_in(port / "state");
      const std::size_t word = state.find(' ');
      device.ports.push_back({number_after(port.filename().native(), "").value_or(0),
                              word == state.npos ? state : state.substr(word + 1), line_in(port / "link_layer")});
    }
    out.push_back(std::move(device));
  }
  return out;
}

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string program_build_id() {
  const auto* segment = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const std::size_t count = getauxval(AT_PHNUM);
  if (segment == nullptr) return {};
  const std::span<const ElfW(Phdr)> segments(segment, count);
  // The program's own load address is where its headers are, less where the file says that they are.
  std::uintptr_t base = 0;
  for (const auto& one : segments)
    if (one.p_type == PT_PHDR) base = reinterpret_cast<std::uintptr_t>(segment) - one.p_vaddr;
  constexpr auto aligned = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
  for (const auto& one : segments) {
    if (one.p_type != PT_NOTE) continue;
    const auto* const notes = reinterpret_cast<const unsigned char*>(base + one.p_vaddr);
    for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= one.p_memsz;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + at, sizeof note);
      const std::size_t name = at + sizeof note;
      const std::size_t content = name + aligned(note.n_namesz);
      at = content + aligned(note.n_descsz);
      if (at > one.p_memsz || note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4) continue;
      if (std::memcmp(notes + name, "GNU", 4) != 0) continue;
      std::string id;
      char two[3];
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        std::snprintf(two, sizeof two, "%02x", notes[content + i]);
        id += two;
      }
      return id;
    }
  }
  return {};
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* units[] = {" B", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(units) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + units[unit];
}

std::string about_bytes_text(std::uint64_t bytes) {
  if (bytes == UINT64_MAX) return "unlimited";
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (unit + 1 < std::size(units) && value >= 1024) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text,
                value < 100 && value != static_cast<double>(static_cast<int>(value)) ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

}  // namespace holdfast::tool
