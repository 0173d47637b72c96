// What an invariant is made of: a number, a sentence, the events it judges, and a judgment.
//
// Why this exists: a promise of the specification is one small class. Books are kept by the ghost and events reach
// invariants through one door, so that a world that emits none of their events pays nothing for them.
//
// Ownership   The registry owns invariants for the life of the process.
// Threading   One OS thread, in kernel scope.
// Failure     A broken promise is reported through the world.
#pragma once

#include <properties/invariants/ghost.hpp>
#include <sim/kernel/check.hpp>
#include <sim/kernel/world.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::invariants {

using holdfast::event_id;
using sim::hardware_event;
using sim::kind_of;
using sim::logged_event;
using sim::world;

class invariant : public sim::check {
 public:
  /// Empty: the registry's first check receives events for all and hands them on.
  std::vector<sim::event_kind> wants() const override { return {}; }
  std::string_view id() const noexcept final { return id_; }
  std::string_view sentence() const noexcept final { return sentence_; }
  void begin(world&) override {}
  void on_event(world&, const logged_event&) override {}
  void at_rest(world& w) final;
  void at_stuck(world& w) final;

  const std::vector<sim::event_kind>& kinds() const noexcept { return kinds_; }
  /// The ghost has seen `e` already.
  virtual void judge(world& w, const logged_event& e, host_books& books) = 0;
  /// For every host that lives at the end of a clean run.
  virtual void judge_at_rest(world&, std::uint16_t /*host*/, host_books&) {}
  /// For every living host of a world in which nothing can run any more: whether this promise is why.
  virtual void judge_when_stuck(world&, std::uint16_t /*host*/, host_books&) {}

 protected:
  invariant(std::string_view id, std::string_view sentence, std::initializer_list<sim::event_kind> kinds)
      : id_(id), sentence_(sentence), kinds_(kinds) {}

  /// Something was looked at, and the promise held or not.
  template <class Message>
  void promise(world& w, bool held, Message&& message) {
    ++exercised;
    if (!held) w.violate(id_, std::string(message()));
  }

 private:
  std::string_view id_;
  std::string_view sentence_;
  std::vector<sim::event_kind> kinds_;
};

/// Invariants in the order in which they judge; each file of this directory adds its own.
using invariant_list = std::vector<std::unique_ptr<invariant>>;
void add_world(invariant_list&);
void add_ledger(invariant_list&);
void add_quarantine(invariant_list&);
void add_blocks(invariant_list&);
void add_arenas(invariant_list&);
void add_spans(invariant_list&);
void add_gets(invariant_list&);
void add_reclaim(invariant_list&);
void add_shutdown(invariant_list&);
void add_transport_operations(invariant_list&);
void add_transport_connections(invariant_list&);
void add_transport_memory(invariant_list&);
void add_transport_turns(invariant_list&);
void add_progress(invariant_list&);
void add_looks(invariant_list&);

/// What all invariants share.
ghost& the_ghost();

/// "7 of host a", for messages.
std::string named(world& w, const logged_event& e, std::string_view what, std::uint64_t id);

}  // namespace holdfast::invariants
