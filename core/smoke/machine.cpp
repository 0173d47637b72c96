#include <holdfast/platform/abi.hpp>

#include "smoke/machine.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

namespace holdfast::smoke {

namespace {

std::uint64_t limit_bytes(rlim_t limit) noexcept { return limit == RLIM_INFINITY ? UINT64_MAX : limit; }

std::optional<std::uint64_t> number_in(const char* file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

fact words(std::string name, std::string text) { return {std::move(name), std::move(text), 0, false}; }
fact number(std::string name, std::uint64_t value) { return {std::move(name), {}, value, true}; }

fact limit(std::string name, std::uint64_t bytes) {
  return bytes == UINT64_MAX ? words(std::move(name), "unlimited") : number(std::move(name), bytes);
}

}  // namespace

lock_limits locked_memory_limits() noexcept {
  rlimit found{};
  if (getrlimit(RLIMIT_MEMLOCK, &found) != 0) return {};
  return {limit_bytes(found.rlim_cur), limit_bytes(found.rlim_max)};
}

std::string limits_text(const lock_limits& limits) {
  const auto shown = [](std::uint64_t bytes) {
    return bytes == UINT64_MAX ? std::string("unlimited") : bytes_text(bytes);
  };
  return "RLIMIT_MEMLOCK " + shown(limits.soft_bytes) + " (hard " + shown(limits.hard_bytes) + ")";
}

std::vector<fact> machine_facts() {
  std::vector<fact> out;
  utsname system{};
  if (uname(&system) == 0) {
    out.push_back(words("system", std::string(system.sysname) + " " + system.release));
    out.push_back(words("architecture", system.machine));
  }
  out.push_back(number("processors", std::thread::hardware_concurrency()));
  struct sysinfo memory{};
  if (sysinfo(&memory) == 0) out.push_back(number("memory_bytes", std::uint64_t{memory.totalram} * memory.mem_unit));
  out.push_back(number("page_bytes", static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))));
  const lock_limits limits = locked_memory_limits();
  out.push_back(limit("locked_bytes_soft", limits.soft_bytes));
  out.push_back(limit("locked_bytes_hard", limits.hard_bytes));
  if (const auto maps = number_in("/proc/sys/vm/max_map_count")) out.push_back(number("max_map_count", *maps));
  out.push_back(words("version", HOLDFAST_VERSION));
  out.push_back(words("build", program_build_id()));
  return out;
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

}  // namespace holdfast::smoke
