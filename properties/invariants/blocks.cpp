// Promises about pages and registrations.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class no_page_goes_back_under_a_registration final : public invariant {
 public:
  no_page_goes_back_under_a_registration()
      : invariant("PM-I1", "no page goes back while a registration over it exists or may still appear",
                  {kind_of(hardware_event::pages_returned), kind_of(hardware_event::pages_tombstoned)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const pages_record* const p = b.pages.find(e.fields[0]);
    if (p == nullptr) return;
    const block_record* const block = b.blocks.find(p->block);
    if (block == nullptr || !block->mapped) return;
    promise(w, block->maps_open == 0 && block->regions_open == 0, [&] {
      return named(w, e, "block", p->block) + " went back with " + std::to_string(block->maps_open) +
             " registrations asked for and " + std::to_string(block->regions_open) + " not confirmed gone";
    });
  }
};

class no_map_over_freed_memory final : public invariant {
 public:
  no_map_over_freed_memory()
      : invariant("PM-I2", "the device never registers memory that was given back",
                  {kind_of(hardware_event::nic_registered)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const pages_record* const p = b.pages.find(e.fields[1]);
    if (p == nullptr || p->block == none) return;
    promise(w, p->owned, [&] { return named(w, e, "pages", e.fields[1]) + " were registered after they went back"; });
  }
};

class one_accepted_unmap final : public invariant {
 public:
  one_accepted_unmap()
      : invariant("PM-I11", "a region has at most one accepted unmap; another follows only a refusal",
                  {kind_of(event_id::unmap_submitted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const region_record& region = *b.regions.find(e.fields[0]);
    promise(w, region.accepted == 1 && !region.confirmed && !region.forced,
            [&] { return "a second unmap of " + named(w, e, "region", e.fields[0]) + " was submitted"; });
  }
};

class registrations_on_their_own_thread final : public invariant {
 public:
  registrations_on_their_own_thread()
      : invariant("PM-I53", "map and unmap calls of the driver run on the registration thread only",
                  {kind_of(hardware_event::nic_registered), kind_of(hardware_event::nic_deregistered)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    // The hardware lets go by itself when a context ends or a machine dies.
    if (e.fiber == 0xffffffff || b.registration_fiber == 0xffffffff) return;
    promise(w, e.fiber == b.registration_fiber && e.fiber != b.progress_fiber, [&] {
      return named(w, e, "registration", e.fields[0]) + " was touched from fiber " + std::to_string(e.fiber) +
             "; registrations are fiber " + std::to_string(b.registration_fiber) + "'s";
    });
  }
};

class refusals_are_asked_again_in_bounds final : public invariant {
 public:
  refusals_are_asked_again_in_bounds()
      : invariant("PM-I46", "a refused unmap is submitted again within its bound, with the id that the map gave",
                  {kind_of(event_id::unmap_submitted), kind_of(event_id::unmap_retrying)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const region_record* const region = b.regions.find(e.fields[0]);
    if (e.kind == event_id::unmap_retrying) {
      promise(w, region != nullptr && region->last_refused, [&] {
        return "an unmap of " + named(w, e, "region", e.fields[0]) + " is asked for again, and was not refused";
      });
      return;
    }
    promise(w, region->block != none && e.fields[2] == region->unmaps, [&] {
      return "an unmap of " + named(w, e, "region", e.fields[0]) + " is said to be submission " +
             std::to_string(e.fields[2]) + " and is " + std::to_string(region->unmaps) +
             (region->block == none ? " of an id that no map gave" : "");
    });
    const pool_record* const pool = b.pool_of_region(e.fields[0]);
    if (pool == nullptr || region->unmaps == 1) return;
    promise(w, region->unmaps <= 1 + pool->retries, [&] {
      return "an unmap of " + named(w, e, "region", e.fields[0]) + " was submitted " + std::to_string(region->unmaps) +
             " times; it may be asked for again " + std::to_string(pool->retries) + " times";
    });
  }
};

class late_readers_find_zeros final : public invariant {
 public:
  late_readers_find_zeros()
      : invariant("TP-I26", "while emulated lanes are in use no settled block's addresses are unmapped",
                  {kind_of(hardware_event::pages_returned), kind_of(hardware_event::pages_tombstoned)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const pages_record* const p = b.pages.find(e.fields[0]);
    const block_record* const block = p != nullptr ? b.blocks.find(p->block) : nullptr;
    // Memory that never was registered nobody was told of.
    if (block == nullptr || !block->mapped || b.workers_open == 0) return;
    promise(w, e.kind == hardware_event::pages_tombstoned,
            [&] { return named(w, e, "block", p->block) + " was unmapped, and a peer's late read may still come"; });
  }
};

}  // namespace

void add_blocks(invariant_list& list) {
  list.push_back(std::make_unique<no_page_goes_back_under_a_registration>());
  list.push_back(std::make_unique<no_map_over_freed_memory>());
  list.push_back(std::make_unique<one_accepted_unmap>());
  list.push_back(std::make_unique<refusals_are_asked_again_in_bounds>());
  list.push_back(std::make_unique<registrations_on_their_own_thread>());
  list.push_back(std::make_unique<late_readers_find_zeros>());
}

}  // namespace holdfast::invariants
