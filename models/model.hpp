// A lifecycle of the specification as a machine that runs beside the core.
//
// Why this exists: a table in a spec page says what may happen to an object. Written down a second time, as a
// machine that is fed with events, it notices whatever the table does not allow; counting its transitions says what
// no workload ever did; and its picture is drawn from the table itself, so that it cannot be out of date.
//
// A model is written from the specification's table, not from the code. It shares names with core and no logic.
//
// Ownership   Models live as long as the process; callers borrow. Machines of one run are forgotten when the next
//             begins.
// Threading   One OS thread.
// Failure     An event without a transition is a violation named "model NAME".
#pragma once

#include <sim/kernel/check.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::models {

struct transition {
  std::string_view source;
  std::string_view event;
  std::string_view guard;  // empty: always
  std::string_view target;
  std::uint64_t taken;  // over all runs of the process
};

class model {
 public:
  virtual ~model() = default;
  /// "arena": also the name of its picture, docs/models/arena.svg.
  virtual std::string_view name() const noexcept = 0;
  /// Where the table stands in the specification.
  virtual std::string_view source() const noexcept = 0;
  virtual std::vector<std::string_view> states() const = 0;
  /// In the order of the table.
  virtual std::vector<transition> transitions() const = 0;
  /// The picture, as Graphviz text.
  virtual std::string dot() const = 0;
  /// What feeds it from a run's events.
  virtual sim::check& feed() noexcept = 0;
};

/// In order of name.
std::vector<model*> all();

}  // namespace holdfast::models
