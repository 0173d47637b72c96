#include <sim/backend/scripted_backend.hpp>

#include <sim/backend/pattern.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/hardware/nic.hpp>
#include <sim/kernel/fiber.hpp>

#include <holdfast/telemetry/emit.hpp>

#include <algorithm>
#include <cstring>
#include <span>

namespace holdfast::inline HOLDFAST_ABI {

/// Only the scripted device knows that it ended.
class scripted_teardown {
 public:
  static witness prove(std::uint64_t incarnation, std::uint64_t epoch, bool fences_gets) noexcept {
    return witness(incarnation, epoch, fences_gets);
  }
};

}  // namespace holdfast::inline HOLDFAST_ABI

namespace holdfast::sim {

namespace hf = holdfast;

namespace {

constexpr std::int64_t never_ns = INT64_MAX;
constexpr std::size_t page_bytes = 4096;
constexpr std::uint64_t context = 1, worker = 1, endpoint = 1, epoch = 1;

/// Order of the events' enumerations in telemetry/events.def.
constexpr std::uint64_t kind_get = 0;
namespace exits {
constexpr std::uint64_t inline_done = 0, callback = 1, error = 2, swept = 3, withdrawn = 5;
}

constexpr std::int64_t status_ok = 0, status_failed = -3;

template <class Answer>
struct named_answer {
  std::string_view name;
  Answer answer;
};

template <class Answer, std::size_t Count>
Answer answer_of(const fault* planned, const named_answer<Answer> (&names)[Count]) {
  if (planned != nullptr)
    for (const auto& each : names)
      if (each.name == planned->what) return each.answer;
  return Answer{};
}

std::int64_t value_of(const fault* planned) {
  return planned == nullptr ? 0 : std::max<std::int64_t>(planned->value, 0);
}

}  // namespace

hf::remote_reference scripted_source(const hf::peer_id& owner, std::uint64_t seed, std::uint64_t bytes) {
  hf::remote_reference range;
  // An address of nothing here: whoever follows it touches no byte of this host.
  range.address = 0x10'0000 + seed * 0x1'0000;
  range.length = bytes;
  std::byte key[sizeof seed];
  std::memcpy(key, &seed, sizeof key);
  range.key.assign(key);
  range.generation = seed + 1;
  range.incarnation = owner.incarnation;
  return range;
}

scripted_backend::scripted_backend(host& machine, const scripted_options& how)
    : machine_(machine), world_(machine.owner()), options_(how) {}

void scripted_backend::start(hf::event_log& log) {
  kernel_scope kernel;
  log_ = &log;
  registrar_.object = world_.new_object("scripted registrations");
  if (transfers()) mover_.object = world_.new_object("scripted transfers");
}

// Fibers ------------------------------------------------------------------------------------------------------

// With the first work: a fiber that waits for its first turn is one more to choose from at every point before.
void scripted_backend::wake(agent& one) {
  if (one.object == 0) return;
  if (one.self == nullptr) {
    one.self = &one == &registrar_ ? &machine_.spawn("device", [this] { serve_registrations(); })
                                   : &machine_.spawn("device-progress", [this] { serve_transfers(); });
  } else if (one.idle) {
    one.idle = false;
    world_.wake(*one.self);
  }
}

void scripted_backend::sleep(agent& one, std::int64_t until_ns) {
  if (waiting_ != nullptr) world_.wake(*waiting_);
  one.idle = true;
  world_.block(op_kind::take, one.object, until_ns);
  one.idle = false;
}

void scripted_backend::move_to(life next) {
  life_ = next;
  wake(registrar_);
  wake(mover_);
  if (waiting_ != nullptr) world_.wake(*waiting_);
}

void scripted_backend::wait_for(life wanted, std::int64_t until_ns) {
  while (life_ < wanted && world_.now() < until_ns) {
    waiting_ = world_.running();
    world_.block(op_kind::driver_call, 0, until_ns);
    waiting_ = nullptr;
  }
}

// A request comes in: a scheduling point, and what no caller may do.
void scripted_backend::enter(const char* function) {
  world_.point(op_kind::driver_call);
  if (world_.locks_held_by_running_fiber() == 0) return;
  kernel_scope kernel;
  world_.violate("backend misuse", world_.running()->name + " calls " + function + " with a lock held");
}

const fault* scripted_backend::planned(const char* point) { return fault_plan::of(world_).strike(machine_, point); }

// Registrations -----------------------------------------------------------------------------------------------

void scripted_backend::submit_map(hf::pinned::map_request& request) noexcept {
  enter("submit_map");
  kernel_scope kernel;
  static constexpr named_answer<map_answer> names[] = {{"larger", map_answer::larger},
                                                       {"short", map_answer::shorter},
                                                       {"refused", map_answer::refused},
                                                       {"never", map_answer::never},
                                                       {"silent", map_answer::silent}};
  const fault* const strikes = planned("scripted.map");
  maps_.push_back({&request, answer_of(strikes, names), world_.now() + options_.map_ns + value_of(strikes)});
  wake(registrar_);
}

void scripted_backend::submit_unmap(hf::pinned::unmap_request& request) noexcept {
  enter("submit_unmap");
  kernel_scope kernel;
  static constexpr named_answer<unmap_answer> names[] = {{"refused", unmap_answer::refused},
                                                         {"unknown_done", unmap_answer::unknown_done},
                                                         {"unknown_kept", unmap_answer::unknown_kept},
                                                         {"lie", unmap_answer::lie},
                                                         {"never", unmap_answer::never}};
  const fault* const strikes = planned("scripted.unmap");
  unmaps_.push_back({&request, answer_of(strikes, names), world_.now() + options_.unmap_ns + value_of(strikes)});
  wake(registrar_);
}

scripted_backend::registration* scripted_backend::find(std::uint64_t region) noexcept {
  const auto found = std::ranges::find(registrations_, region, &registration::region);
  return found == registrations_.end() ? nullptr : &*found;
}

bool scripted_backend::is_due(const waiting_map& asked) const noexcept {
  if (hurried()) return true;
  if (asked.answer == map_answer::never || (asked.answer == map_answer::silent && (asked.begun || dead())))
    return false;
  return asked.due_ns <= world_.now();
}

bool scripted_backend::is_due(const waiting_unmap& asked) const noexcept {
  if (hurried()) return true;
  if (!asked.begun && !dead()) return true;
  return asked.answer != unmap_answer::never && asked.due_ns <= world_.now();
}

std::int64_t scripted_backend::next_registration_ns() const noexcept {
  std::int64_t next = never_ns;
  for (const waiting_map& each : maps_)
    if (each.answer != map_answer::never && !(each.answer == map_answer::silent && (each.begun || dead())))
      next = std::min(next, each.due_ns);
  for (const waiting_unmap& each : unmaps_)
    if (each.answer != unmap_answer::never) next = std::min(next, each.due_ns);
  return next;
}

void scripted_backend::serve_registrations() {
  for (;;) {
    world_.touch();
    if (life_ == life::hung) {
      sleep(registrar_, never_ns);
    } else if (registration_step()) {
      world_.point(op_kind::take, registrar_.object);
    } else if (life_ == life::stopping) {
      break;
    } else {
      sleep(registrar_, !transfers() && life_ == life::closing ? std::min(next_registration_ns(), teardown_due_ns_)
                                                               : next_registration_ns());
    }
  }
  registrar_.ended = true;
  if (waiting_ != nullptr) world_.wake(*waiting_);
}

bool scripted_backend::registration_step() {
  if (!transfers() && life_ == life::closing && destroy_worker()) return true;
  if (life_ == life::worker_gone) {
    close_context();
    return true;
  }
  const auto due_unmap = std::ranges::find_if(unmaps_, [this](const waiting_unmap& each) { return is_due(each); });
  if (due_unmap != unmaps_.end()) {
    if (!due_unmap->begun && !dead()) begin_unmap(*due_unmap);
    if (!is_due(*due_unmap)) return true;
    const waiting_unmap asked = *due_unmap;
    unmaps_.erase(due_unmap);
    unmap(asked);
    return true;
  }
  const auto due_map = std::ranges::find_if(maps_, [this](const waiting_map& each) { return is_due(each); });
  if (due_map == maps_.end()) return false;
  if (due_map->answer == map_answer::silent && !dead()) {
    kernel_scope kernel;
    due_map->begun = true;
    nic& card = nic_of(machine_);
    registration_attempt attempt = card.begin_register(due_map->request->address, due_map->request->bytes);
    card.finish_register(attempt, context);
    return true;
  }
  const waiting_map asked = *due_map;
  maps_.erase(due_map);
  map(asked);
  return true;
}

void scripted_backend::map(waiting_map asked) {
  hf::pinned::map_request& request = *asked.request;
  hf::result<hf::pinned::mapped_range> answer = hf::fail(hf::error_code::shutting_down, "scripted.map");
  if (!dead()) {
    kernel_scope kernel;
    std::byte* base = request.address;
    std::size_t bytes = request.bytes;
    if (asked.answer == map_answer::shorter && bytes > page_bytes) bytes -= page_bytes;
    nic& card = nic_of(machine_);
    registration_attempt attempt;
    if (asked.answer == map_answer::refused)
      attempt.answer = registration_answer::no_memory;
    else
      attempt = card.begin_register(base, bytes);
    const std::uint64_t pin = card.finish_register(attempt, context);
    if (attempt.answer == registration_answer::ok) {
      bytes = attempt.bytes;  // the card may cover less, and says so
      hf::pinned::mapped_range range{++last_region_, base, bytes, {}};
      registrations_.push_back({range.region, pin, base, bytes});
      if (asked.answer == map_answer::larger) {
        range.effective_address -= page_bytes;
        range.effective_bytes += 2 * page_bytes;
      }
      if (asked.answer == map_answer::shorter && bytes == request.bytes) --range.effective_bytes;
      std::byte key[sizeof range.region];
      std::memcpy(key, &range.region, sizeof key);
      range.key.assign(key);
      answer = range;
    } else {
      answer = hf::fail(hf::error_code::backend, "scripted.map", 0, static_cast<std::uint64_t>(attempt.answer));
    }
  }
  request.mapped(answer);
}

void scripted_backend::begin_unmap(waiting_unmap& asked) {
  kernel_scope kernel;
  asked.begun = true;
  if (asked.answer == unmap_answer::refused && !options_.declared.can_refuse_unmap)
    asked.answer = unmap_answer::unknown_kept;
  registration* const found = find(asked.request->region);
  if (found == nullptr) {
    // Twice, or never mapped: an error, and nobody else's registration goes.
    if (asked.answer == unmap_answer::confirmed || asked.answer == unmap_answer::lie)
      asked.answer = unmap_answer::unknown_kept;
    return;
  }
  if (asked.answer == unmap_answer::refused) return;
  for (const transfer& each : gets_) {
    if (each.step == get_step::queued || each.destination + each.bytes <= found->base ||
        each.destination >= found->base + found->bytes)
      continue;
    world_.violate("W-1", "registration " + std::to_string(found->pin) + " of " +
                              memory_of(machine_).describe(each.destination) +
                              " is being deregistered while transfer " + std::to_string(each.hardware_request) +
                              " may still write there");
  }
  memory_of(machine_).begin_unpin(found->pin);
}

void scripted_backend::unmap(waiting_unmap asked) {
  auto verdict = hf::pinned::unmap_verdict::unknown;
  {
    kernel_scope kernel;
    const auto found = std::ranges::find(registrations_, asked.request->region, &registration::region);
    const bool here = found != registrations_.end() && !dead();
    switch (asked.answer) {
      case unmap_answer::confirmed:
      case unmap_answer::lie:
        // A second unmap of one id finds nothing, and is an error.
        if (here || dead()) verdict = hf::pinned::unmap_verdict::confirmed;
        if (here) memory_of(machine_).claim_unpinned(found->pin, asked.answer == unmap_answer::confirmed);
        if (here) registrations_.erase(found);
        break;
      case unmap_answer::unknown_done:
        if (here) memory_of(machine_).claim_unpinned(found->pin, true);
        if (here) registrations_.erase(found);
        break;
      case unmap_answer::refused:
        // Nothing changed; after the end of everything that would be a lie.
        if (!dead()) verdict = hf::pinned::unmap_verdict::refused;
        break;
      case unmap_answer::unknown_kept:
      case unmap_answer::never: break;
    }
    if (verdict != hf::pinned::unmap_verdict::confirmed) ++unconfirmed_;
  }
  asked.request->unmapped(verdict);
}

void scripted_backend::close_context() {
  kernel_scope kernel;
  const std::size_t dropped = memory_of(machine_).drop_pins(context);
  registrations_.clear();
  world_.log(&machine_, hardware_event::driver_context_closed, context, dropped);
  move_to(life::gone);
}

// Transfers ---------------------------------------------------------------------------------------------------

hf::result<void> scripted_backend::submit_get(hf::pinned::get_request& request) noexcept {
  enter("submit_get");
  bool ends_inline = false;
  transfer made{};
  {
    kernel_scope kernel;
    if (!options_.declared.get_works) return hf::fail(hf::error_code::not_configured, "scripted.get");
    if (life_ != life::running) return hf::fail(hf::error_code::shutting_down, "scripted.get");
    const fault* const strikes = planned("scripted.get");
    if (strikes != nullptr && strikes->what == "refused")
      return hf::fail(hf::error_code::unreachable, "scripted.get", request.peer.worker_id);
    ends_inline = strikes != nullptr && strikes->what == "inline";
    static constexpr named_answer<get_answer> names[] = {{"failed", get_answer::failed},
                                                         {"never", get_answer::never},
                                                         {"indeterminate", get_answer::indeterminate},
                                                         {"orphaned_ok", get_answer::orphaned_ok},
                                                         {"orphaned_failed", get_answer::orphaned_failed},
                                                         {"orphaned_never", get_answer::orphaned_never}};
    made.operation = ++last_operation_;
    made.request = &request;
    made.answer = answer_of(strikes, names);
    made.due_ns = world_.now();
    made.late_ns = value_of(strikes);
    made.destination = request.destination;
    made.bytes = request.bytes;
    std::memcpy(&made.seed, request.source.key.bytes().data(),
                std::min(sizeof made.seed, request.source.key.bytes().size()));
    const memory_place place = memory_of(machine_).name_of(request.destination);
    made.block = place.block;
    made.offset = place.offset;
    if (const registration* const into = find(request.destination_region)) made.registration = into->pin;
    request.operation = made.operation;
    hf::emit::operation_accepted(*log_, made.operation, request.peer.worker_id, request.peer.incarnation, made.bytes,
                                 kind_get);
  }
  request.accepted();
  if (!ends_inline) {
    kernel_scope kernel;
    gets_.push_back(made);
    wake(mover_);
    return {};
  }
  {
    kernel_scope kernel;
    hf::emit::operation_submitted(*log_, made.operation, endpoint);
    made.admission = memory_of(machine_).admit(0, made.destination);
    land(made, made.bytes);
    hf::emit::operation_ended(*log_, made.operation, exits::inline_done, status_ok);
  }
  request.ended(hf::pinned::get_outcome::ok, {});
  return {};
}

scripted_backend::transfer* scripted_backend::find_transfer(std::uint64_t operation) noexcept {
  const auto found = std::ranges::find(gets_, operation, &transfer::operation);
  return found == gets_.end() ? nullptr : &*found;
}

std::int64_t scripted_backend::next_transfer_ns() const noexcept {
  if (worker_destroyed_ && !dead()) return never_ns;
  std::int64_t next = life_ == life::closing ? teardown_due_ns_ : never_ns;
  for (const transfer& each : gets_)
    if (each.step != get_step::left) next = std::min(next, each.due_ns);
  return next;
}

void scripted_backend::serve_transfers() {
  for (;;) {
    world_.touch();
    if (life_ == life::hung) {
      sleep(mover_, never_ns);
    } else if (transfer_step()) {
      world_.point(op_kind::take, mover_.object);
    } else if (life_ == life::stopping) {
      break;
    } else {
      sleep(mover_, next_transfer_ns());
    }
  }
  mover_.ended = true;
  if (waiting_ != nullptr) world_.wake(*waiting_);
}

bool scripted_backend::transfer_step() {
  if (life_ == life::closing && destroy_worker()) return true;
  const auto due = std::ranges::find_if(gets_, [this](const transfer& each) {
    if (dead()) return each.due_ns <= world_.now() || life_ != life::gone;
    return !worker_destroyed_ && each.step != get_step::left && each.due_ns <= world_.now();
  });
  if (due == gets_.end()) return false;
  if (worker_destroyed_) {
    kernel_scope kernel;
    const transfer late = *due;
    gets_.erase(due);
    land_after_the_end(late);
    return true;
  }
  advance(due->operation);
  return true;
}

void scripted_backend::advance(std::uint64_t operation) {
  transfer& one = *find_transfer(operation);
  switch (one.step) {
    case get_step::queued: {
      const bool at_once = one.answer == get_answer::ok && options_.get_ns == 0;
      begin_transfer(operation);
      // Without a duration nothing that core can see lies between the beginning and the end.
      if (transfer* const begun = at_once ? find_transfer(operation) : nullptr;
          begun != nullptr && begun->step == get_step::half)
        half_landed(*begun);
      return;
    }
    case get_step::half: return half_landed(one);
    case get_step::rest:
    case get_step::late: {
      const bool ok = one.answer != get_answer::failed && one.answer != get_answer::orphaned_failed;
      const bool told = one.request == nullptr;
      {
        kernel_scope kernel;
        if (ok) land(one, one.bytes);
        complete(one, ok);
        if (told) std::erase_if(gets_, [operation](const transfer& each) { return each.operation == operation; });
      }
      if (!told)
        end(operation, ok ? hf::pinned::get_outcome::ok : hf::pinned::get_outcome::failed, exits::callback,
            ok ? status_ok : status_failed);
      return;
    }
    case get_step::left: return;
  }
}

void scripted_backend::begin_transfer(std::uint64_t operation) {
  // Asked outside kernel scope: others may submit meanwhile.
  const bool abandoned = find_transfer(operation)->request->abandoned();
  if (life_ == life::hung) return;
  if (abandoned) return end(operation, hf::pinned::get_outcome::never_started, exits::withdrawn, 0);
  kernel_scope kernel;
  transfer& one = *find_transfer(operation);
  hf::emit::operation_submitted(*log_, operation, endpoint);
  one.hardware_request = ++last_request_;
  one.admission = memory_of(machine_).admit(one.hardware_request, one.destination);
  world_.log(&machine_, hardware_event::driver_get_posted, one.hardware_request, one.block, one.offset, one.bytes,
             endpoint);
  hf::emit::operation_posted(*log_, operation);
  one.step = get_step::half;
  one.due_ns = world_.now() + options_.get_ns / 2;
}

void scripted_backend::half_landed(transfer& one) {
  const std::uint64_t operation = one.operation;
  const bool whole = one.answer == get_answer::ok && options_.get_ns == 0;
  {
    kernel_scope kernel;
    one.step = get_step::rest;
    one.due_ns = world_.now() + options_.get_ns - options_.get_ns / 2;
    if (one.answer != get_answer::ok && one.answer != get_answer::failed) {
      one.step = get_step::late;
      one.due_ns = world_.now() + one.late_ns;
    }
    if (one.answer == get_answer::never || one.answer == get_answer::orphaned_never) one.step = get_step::left;
    if (!whole) land(one, one.bytes / 2);
  }
  if (whole) return advance(operation);
  switch (one.answer) {
    case get_answer::indeterminate:
      return end(operation, hf::pinned::get_outcome::indeterminate, exits::error, status_failed);
    case get_answer::orphaned_ok:
    case get_answer::orphaned_failed:
    case get_answer::orphaned_never: return one.request->orphaned();
    case get_answer::ok:
    case get_answer::failed:
    case get_answer::never: return;
  }
}

void scripted_backend::land(transfer& one, std::size_t bytes) {
  if (bytes <= one.landed) return;
  std::vector<std::byte> content(bytes - one.landed);
  write_pattern(content, one.seed, one.landed);
  memory_of(machine_).dma_write(one.destination + one.landed, content.data(), content.size(), one.registration,
                                one.admission);
  one.landed = bytes;
}

// The worker is gone, and this device says of itself that it may write all the same: whoever had the bytes then must
// still have them.
void scripted_backend::land_after_the_end(const transfer& one) {
  if (one.landed >= one.bytes) return;
  const host_memory& memory = memory_of(machine_);
  std::byte* const to = one.destination + one.landed;
  const std::size_t bytes = one.bytes - one.landed;
  if (!memory.owned(to, bytes) || memory.name_of(to).block != one.block) {
    world_.violate("W-1", "transfer " + std::to_string(one.hardware_request) + " of a worker that is gone wrote " +
                              std::to_string(bytes) + " bytes at " + memory.describe(to) +
                              ", which is not owned by a program (any more)");
    return;
  }
  write_pattern(std::span(to, bytes), one.seed, one.landed);
}

// The library ends its request; the device writes no more.
void scripted_backend::complete(transfer& one, bool ok) {
  const auto status = static_cast<std::uint64_t>(ok ? status_ok : status_failed);
  world_.log(&machine_, hardware_event::driver_get_completed, one.hardware_request, status, one.landed);
  world_.log(&machine_, hardware_event::driver_callback, one.hardware_request, status);
}

void scripted_backend::end(std::uint64_t operation, hf::pinned::get_outcome outcome, std::uint64_t exit,
                           std::int64_t status) {
  hf::pinned::get_request* request = nullptr;
  {
    kernel_scope kernel;
    transfer& one = *find_transfer(operation);
    request = std::exchange(one.request, nullptr);
    // Late bytes stay on their way.
    const bool goes_on = outcome == hf::pinned::get_outcome::indeterminate &&
                         (!worker_destroyed_ || !options_.declared.destroy_is_fence);
    if (!goes_on) std::erase_if(gets_, [operation](const transfer& each) { return each.operation == operation; });
    hf::emit::operation_ended(*log_, operation, exit, static_cast<std::uint64_t>(status));
  }
  hf::error why;
  if (outcome == hf::pinned::get_outcome::failed)
    why = hf::fail(hf::error_code::transfer_failed, "scripted.get", operation, static_cast<std::uint64_t>(status))
              .error();
  if (outcome == hf::pinned::get_outcome::never_started)
    why = hf::fail(hf::error_code::cancelled, "scripted.get", operation).error();
  if (outcome == hf::pinned::get_outcome::indeterminate)
    why = hf::fail(hf::error_code::indeterminate, "scripted.get", operation).error();
  request->ended(outcome, why);
}

// The end -----------------------------------------------------------------------------------------------------

bool scripted_backend::destroy_worker() {
  // What was not handed over yet never will be.
  for (const transfer& each : gets_)
    if (each.step == get_step::queued && each.request != nullptr && !worker_destroyed_) {
      end(each.operation, hf::pinned::get_outcome::never_started, exits::withdrawn, 0);
      return true;
    }
  if (world_.now() < teardown_due_ns_) return false;
  if (!worker_destroyed_) {
    kernel_scope kernel;
    worker_destroyed_ = true;
    world_.log(&machine_, hardware_event::driver_worker_destroyed, worker, gets_.size());
    hf::emit::worker_destroyed(*log_, epoch);
  }
  for (transfer& each : gets_) {
    if (each.request == nullptr) continue;
    each.step = get_step::late;
    each.due_ns = world_.now() + each.late_ns;
    ++swept_;
    end(each.operation, hf::pinned::get_outcome::indeterminate, exits::swept, 0);
    return true;
  }
  kernel_scope kernel;
  if (options_.declared.destroy_is_fence) gets_.clear();
  std::erase_if(gets_, [](const transfer& each) { return each.landed >= each.bytes; });
  hf::emit::table_swept(*log_, epoch, swept_);
  move_to(life::worker_gone);
  return true;
}

std::optional<hf::witness> scripted_backend::tear_down(std::int64_t deadline_ns) {
  world_.point(op_kind::driver_call);
  {
    kernel_scope kernel;
    const fault* const strikes = planned("scripted.teardown");
    teardown_due_ns_ = world_.now();
    if (strikes != nullptr && strikes->what == "hang") teardown_due_ns_ = never_ns;
    if (strikes != nullptr && strikes->what == "slow") teardown_due_ns_ += value_of(strikes);
    silent_ = strikes != nullptr && strikes->what == "silent";
    move_to(life::closing);
  }
  wait_for(life::gone, deadline_ns);
  if (life_ == life::gone) {
    hf::emit::witness_issued(*log_, epoch, unconfirmed_);
    return hf::scripted_teardown::prove(options_.incarnation, epoch, options_.declared.destroy_is_fence);
  }
  std::vector<hf::pinned::get_request*> stuck;
  {
    kernel_scope kernel;
    for (const transfer& each : gets_)
      if (each.request != nullptr) stuck.push_back(each.request);
    hf::emit::teardown_hung(*log_, epoch, std::uint64_t{stuck.size()}, std::uint64_t{registrations_.size()});
    move_to(life::hung);
  }
  // Their records are nobody's any more, so their listeners first, all of them.
  for (hf::pinned::get_request* const request : stuck)
    if (const hf::intrusive_ptr<hf::fate_listener> waiting = request->listener()) waiting->fate_unknown();
  kernel_scope kernel;
  stuck = {};
  return std::nullopt;
}

void scripted_backend::finish() {
  {
    kernel_scope kernel;
    move_to(life::finishing);
  }
  while (!maps_.empty() || !unmaps_.empty() || !gets_.empty()) {
    waiting_ = world_.running();
    world_.block(op_kind::driver_call, 0, never_ns);
    waiting_ = nullptr;
  }
}

void scripted_backend::stop() {
  {
    kernel_scope kernel;
    move_to(life::stopping);
  }
  while (!registrar_.ended || (transfers() && !mover_.ended)) {
    waiting_ = world_.running();
    world_.block(op_kind::thread_join, 0, never_ns);
    waiting_ = nullptr;
  }
}

}  // namespace holdfast::sim
