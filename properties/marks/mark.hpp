// Interesting moments, recognized in the event stream.
//
// Why this exists: a check that never met the circumstances of its hazard proves nothing. A mark says that they
// occurred: "a growth ended with nobody waiting for it". Core is not littered with marks; what happened can be read from
// what it tells anyway. A campaign over everything fails on a mark that no run reached: it is a hole in the workload.
//
// A mark is one file's matter: derive from `mark_detector`, register with a `mark_registrar` (docs/adding-a-mark.md).
//
// Ownership   The registry owns detectors for the life of the process.
// Threading   One OS thread, in kernel scope.
// Failure     None. A detector judges nothing: it reports no violation.
#pragma once

#include <sim/kernel/event.hpp>
#include <sim/kernel/world.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace holdfast::marks {

using holdfast::event_id;
using sim::hardware_event;
using sim::kind_of;
using sim::logged_event;
using sim::world;

class mark_detector {
 public:
  virtual ~mark_detector() = default;
  mark_detector(const mark_detector&) = delete;
  mark_detector& operator=(const mark_detector&) = delete;

  /// Kinds of events that it wants to see.
  const std::vector<sim::event_kind>& kinds() const noexcept { return kinds_; }
  /// Forgets the last run; called only if that run had an event for it.
  virtual void begin() = 0;
  virtual void see(const logged_event& e) = 0;

  bool reached_in_this_run = false;

 protected:
  explicit mark_detector(std::initializer_list<sim::event_kind> kinds) : kinds_(kinds) {}
  void reached() noexcept { reached_in_this_run = true; }

 private:
  std::vector<sim::event_kind> kinds_;
};

struct reached_mark {
  std::string_view id;        // the hazard whose circumstances these are, "PM-H10"; with "a", "b" if it has several
  std::string_view sentence;  // what happened, in the past tense
  std::unique_ptr<mark_detector> detector;
};

/// Every mark, in order of id (numbers by value).
std::vector<reached_mark>& all_marks();

/// Registration by static object. `Detector` is made without arguments.
template <class Detector>
struct mark_registrar {
  mark_registrar(std::string_view id, std::string_view sentence);
};
void add_mark(reached_mark mark);
template <class Detector>
mark_registrar<Detector>::mark_registrar(std::string_view id, std::string_view sentence) {
  add_mark({id, sentence, std::make_unique<Detector>()});
}

/// A mark that one event is: `Test` is called with each event of `Kind` and says whether.
template <auto Kind, bool (*Test)(const logged_event&)>
class single_event final : public mark_detector {
 public:
  single_event() : mark_detector({kind_of(Kind)}) {}
  void begin() override {}
  void see(const logged_event& e) override {
    if (Test(e)) reached();
  }
};

/// The one listener of a run: hands events to the detectors that want them.
class mark_watch final : public sim::listener {
 public:
  mark_watch();
  void begin();
  void on_event(world& w, const logged_event& e) override;
  /// Counts the run that ended; once a run.
  void count();
  /// In how many counted runs each mark was reached, in their order.
  std::span<const std::uint64_t> counts() const noexcept { return counts_; }

 private:
  struct watched {
    mark_detector* detector;
    bool used;
  };
  std::vector<watched> all_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::vector<std::uint32_t>> by_kind_;  // core's kinds first, then the hardware's; indices in `all_`
};

}  // namespace holdfast::marks
