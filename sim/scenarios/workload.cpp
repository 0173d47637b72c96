#include <sim/scenarios/workload.hpp>

#include <sim/kernel/fiber.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace holdfast::sim {

void latch::open(world& w) {
  kernel_scope kernel;
  w.touch();
  open_ = true;
  race::release(this);
  for (fiber* f : waiting_) w.wake(*f);
  waiting_.clear();
}

void latch::wait(world& w) {
  w.touch();
  while (!open_) {
    {
      kernel_scope kernel;
      waiting_.push_back(w.running());
    }
    w.block(op_kind::sleep, 0, INT64_MAX);
  }
  race::acquire(this);
}

// Whoever stops waiting must not be woken out of what he does next.
void latch::forget(const fiber* f) noexcept { std::erase(waiting_, f); }

bool latch::wait_until(world& w, std::int64_t until_ns) {
  w.touch();
  while (!open_ && w.now() < until_ns) {
    {
      kernel_scope kernel;
      waiting_.push_back(w.running());
    }
    w.block(op_kind::sleep, 0, until_ns);
    forget(w.running());
  }
  race::acquire(this);
  return open_;
}

void latch::wait_for_either(world& w, latch& a, latch& b) {
  w.touch();
  while (!a.open_ && !b.open_) {
    {
      kernel_scope kernel;
      a.waiting_.push_back(w.running());
      b.waiting_.push_back(w.running());
    }
    w.block(op_kind::sleep, 0, INT64_MAX);
    a.forget(w.running());
    b.forget(w.running());
  }
  race::acquire(&a);
  race::acquire(&b);
}

namespace {

// "owner@2" is of life 2. None: what follows the sign is no number.
std::optional<std::uint32_t> life_of(std::string_view fiber) {
  const std::size_t sign = fiber.find('@');
  if (sign == std::string_view::npos) return 1;
  std::uint32_t life = 0;
  const auto [end, error] = std::from_chars(fiber.data() + sign + 1, fiber.data() + fiber.size(), life);
  if (error != std::errc() || end != fiber.data() + fiber.size() || life < 2 || sign == 0) return std::nullopt;
  return life;
}

}  // namespace

std::expected<workload, std::string> workload::make(const plan& what, interpreter& how) {
  kernel_scope kernel;
  workload made(how);
  std::uint64_t number = 0;
  for (const op& step : what.ops) {
    ++number;
    const std::size_t slash = step.who.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == step.who.size())
      return std::unexpected("op " + std::to_string(number) + ": who \"" + step.who +
                             "\" is not of the form host/fiber");
    if (auto wrong = how.inspect(step))
      return std::unexpected("op " + std::to_string(number) + " (" + step.who + " " + step.what + "): " + *wrong);
    const std::string host = step.who.substr(0, slash);
    const std::string name = step.who.substr(slash + 1);
    const std::optional<std::uint32_t> life = life_of(name);
    if (!life)
      return std::unexpected("op " + std::to_string(number) + ": who \"" + step.who + "\" names no life after its @");
    auto found = std::find_if(made.lanes_.begin(), made.lanes_.end(),
                              [&](const lane& l) { return l.host == host && l.name == name; });
    if (found == made.lanes_.end()) {
      found = made.lanes_.insert(found, lane{host, name, *life, {}});
      ++made.left_[{host, *life}];
    }
    found->steps.emplace_back(&step, number);
  }
  return made;
}

std::vector<std::string> workload::hosts() const {
  std::vector<std::string> names;
  for (const lane& l : lanes_)
    if (std::find(names.begin(), names.end(), l.host) == names.end()) names.push_back(l.host);
  return names;
}

std::uint32_t workload::last_life_with(const std::string& host, const std::function<bool(const op&)>& matches) const {
  std::uint32_t last = 0;
  for (const lane& l : lanes_) {
    if (l.host != host || l.life <= last) continue;
    if (std::any_of(l.steps.begin(), l.steps.end(), [&](const auto& step) { return matches(*step.first); }))
      last = l.life;
  }
  return last;
}

void workload::spawn(host& h, latch& done) {
  kernel_scope kernel;
  world& w = h.owner();
  bool any = false;
  for (lane& l : lanes_) {
    if (l.host != h.name() || l.life != h.life()) continue;
    any = true;
    h.spawn(l.name, [this, &h, &w, &l, &done] {
      for (const auto& [step, number] : l.steps) {
        w.touch();  // ops tell each other by the interpreter's books
        w.log(&h, hardware_event::op_began, number);
        const step_result came = how_->execute(h, *step, number);
        w.touch();
        w.log(&h, hardware_event::op_ended, number, came.ok, came.code);
      }
      kernel_scope finished;
      if (--left_[{l.host, l.life}] == 0) done.open(w);
    });
  }
  if (!any) done.open(w);
}

}  // namespace holdfast::sim
