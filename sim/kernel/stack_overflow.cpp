#include <sim/kernel/stack_overflow.hpp>

#include <sim/kernel/fiber.hpp>
#include <sim/kernel/stack_pool.hpp>

#include <sys/mman.h>
#include <ucontext.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

#if defined(HOLDFAST_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace holdfast::sim {

namespace {

constexpr std::size_t spare_bytes = 256 * 1024;
std::byte* spare_top = nullptr;  // where an overflowing fiber goes on
struct sigaction before;

std::byte* make_stack() {
  void* const base = mmap(nullptr, spare_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

// On the spare stack, outside the handler: everything may be called again.
[[noreturn]] void report() {
  kernel_scope kernel;
  world& w = world::current();
  const fiber& self = *w.running();
#if defined(HOLDFAST_ASAN)
  // The fiber has moved, as far as the tool is concerned. Its frames below are left for good.
  __sanitizer_start_switch_fiber(nullptr, spare_top - spare_bytes, spare_bytes);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  const std::string object = w.object_name(self.pending_object);
  w.violate_and_stop("stack overflow", self.name + " ran out of its stack of " + std::to_string(self.stack_bytes) +
                                           " bytes; its last operation was " + std::string(name_of(self.pending)) +
                                           (object.empty() ? "" : " ") + object);
}

bool go_on_elsewhere(void* context) noexcept {
  unpoison_stack({spare_top - spare_bytes, spare_bytes});  // whoever was here before was never unwound
  auto* const at = static_cast<ucontext_t*>(context);
  const auto top = reinterpret_cast<std::uintptr_t>(spare_top);
#if defined(__x86_64__)
  // As if called: the return address would stand where it breaks the alignment.
  at->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(top - sizeof(void*));
  at->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(&report));
  return true;
#elif defined(__aarch64__)
  at->uc_mcontext.sp = top;
  at->uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(&report);
  return true;
#else
  static_cast<void>(at);
  static_cast<void>(top);
  return false;
#endif
}

void on_fault(int number, siginfo_t* what, void* context) {
  if (const fiber* const self = detail::running_fiber; self != nullptr) {
    const auto* const where = static_cast<const std::byte*>(what->si_addr);
    if (where >= self->stack_low - stack_guard_bytes && where < self->stack_low && go_on_elsewhere(context)) return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(number, what, context);
  // The instruction faults again, and nobody catches it. A signal that was sent has no instruction.
  std::signal(number, SIG_DFL);
  if (what->si_code <= 0) std::raise(number);
}

}  // namespace

void catch_stack_overflows() {
  static bool done = false;
  if (done) return;
  done = true;
  std::byte* const handlers = make_stack();
  std::byte* const spare = make_stack();
  if (handlers == nullptr || spare == nullptr) return;
  spare_top = spare + spare_bytes;
  stack_t stack = {};
  stack.ss_sp = handlers;
  stack.ss_size = spare_bytes;
  if (sigaltstack(&stack, nullptr) != 0) return;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace holdfast::sim
