// Every promise that runs are held to, in one list.
//
// Why this exists: `holdfast-sim` attaches all of it to every run, lists it with its exercise counts, and fails a
// campaign in which a promise never had anything to look at.
//
// Ownership   The registry owns the checks for the life of the process; callers borrow.
// Threading   One OS thread.
// Failure     None.
#pragma once

#include <sim/kernel/check.hpp>

#include <vector>

namespace holdfast::invariants {

/// Invariants, then models, always in the same order. Attach all of them: the first one receives the events of all
/// invariants and keeps their books.
std::vector<sim::check*> all_checks();

}  // namespace holdfast::invariants
