// A fiber that runs out of its stack is a finding with a name and a trace, not a dead process.
//
// Why this exists: recursion without end is a bug like any other, and the guard below a stack turns it into a signal. The
// signal arrives on a stack of its own and sends the fiber to another one, where it reports itself and leaves for good.
//
// Ownership   The handler and its stacks stay to the end of the process. A fault elsewhere goes to whoever handled it
//             before, by default to the system.
// Threading   The OS thread that runs worlds.
// Failure     On a processor whose registers it does not know nothing is caught, and the process dies as before.
#pragma once

namespace holdfast::sim {

/// Idempotent, and cheap when called again.
void catch_stack_overflows();

}  // namespace holdfast::sim
