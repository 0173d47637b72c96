// The registry, and the one door through which events reach the invariants.

#include <properties/invariants/registry.hpp>

#include <models/model.hpp>
#include <properties/invariants/invariant.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

struct registry {
  registry();
  invariant_list list;
  ghost books;
  // Who judges an event, by kind: core's first, then the hardware's.
  std::vector<std::vector<invariant*>> judges;
  std::vector<sim::event_kind> kinds;

  static std::size_t dense(sim::event_kind kind) noexcept {
    const auto raw = static_cast<std::uint16_t>(kind);
    return is_hardware(kind) ? sim::core_event_count() + (raw & ~sim::hardware_bit) : raw;
  }
  void deliver(world& w, const logged_event& e) {
    books.see(w, e);
    if (e.host == no_host) return;
    for (invariant* const one : judges[dense(e.kind)]) {
      ++one->evaluated;
      one->judge(w, e, books.of(e.host));
    }
  }
};

registry& the_registry() {
  static registry one;
  return one;
}

// Writing into memory that is owned and registered is the first promise; it also is the door for all others.
class no_dma_outside_owned_registered_pages final : public invariant {
 public:
  no_dma_outside_owned_registered_pages()
      : invariant("W-1", "no DMA into a page that is not owned and registered under the key used",
                  {kind_of(hardware_event::dma_write)}) {}
  std::vector<sim::event_kind> wants() const override { return the_registry().kinds; }
  void begin(world&) override { the_registry().books.forget(); }
  void on_event(world& w, const logged_event& e) override { the_registry().deliver(w, e); }
  void judge(world& w, const logged_event& e, host_books&) override {
    promise(w, e.fields[5] != 0, [&] {
      return "a device wrote " + std::to_string(e.fields[2]) + " bytes into " + named(w, e, "pages", e.fields[0]) +
             ", which it may not reach";
    });
  }
};

registry::registry() {
  list.push_back(std::make_unique<no_dma_outside_owned_registered_pages>());
  add_world(list);
  add_ledger(list);
  add_quarantine(list);
  add_blocks(list);
  add_arenas(list);
  add_spans(list);
  add_gets(list);
  add_reclaim(list);
  add_shutdown(list);
  add_transport_operations(list);
  add_transport_connections(list);
  add_transport_memory(list);
  add_transport_turns(list);
  add_progress(list);
  add_looks(list);

  judges.resize(sim::core_event_count() + sim::hardware_event_table().size());
  for (const auto& one : list)
    for (const sim::event_kind kind : one->kinds()) judges[dense(kind)].push_back(one.get());
  std::vector<bool> wanted(judges.size());
  const auto want = [&](sim::event_kind kind) {
    if (wanted[dense(kind)]) return;
    wanted[dense(kind)] = true;
    kinds.push_back(kind);
  };
  for (const sim::event_kind kind : books.needs()) want(kind);
  for (const auto& one : list)
    for (const sim::event_kind kind : one->kinds()) want(kind);
}

}  // namespace

ghost& the_ghost() { return the_registry().books; }

void invariant::at_rest(world& w) {
  ghost& books = the_ghost();
  ++evaluated;
  for (std::size_t host = 0; host < books.host_count(); ++host) {
    if (!books.touched(host) || w.violated()) continue;
    if (host < w.hosts().size() && !w.hosts()[host]->alive()) continue;
    judge_at_rest(w, static_cast<std::uint16_t>(host), books.of(static_cast<std::uint16_t>(host)));
  }
}

void invariant::at_stuck(world& w) {
  ghost& books = the_ghost();
  for (std::size_t host = 0; host < books.host_count(); ++host) {
    if (!books.touched(host) || w.violated()) continue;
    if (host < w.hosts().size() && !w.hosts()[host]->alive()) continue;
    judge_when_stuck(w, static_cast<std::uint16_t>(host), books.of(static_cast<std::uint16_t>(host)));
  }
}

std::string named(world& w, const logged_event& e, std::string_view what, std::uint64_t id) {
  std::string out(what);
  out += ' ';
  out += std::to_string(id);
  out += " of host ";
  out += host_name(w, e.host);
  return out;
}

std::vector<sim::check*> all_checks() {
  std::vector<sim::check*> out;
  for (const auto& one : the_registry().list) out.push_back(one.get());
  for (models::model* const one : models::all()) out.push_back(&one->feed());
  return out;
}

}  // namespace holdfast::invariants
