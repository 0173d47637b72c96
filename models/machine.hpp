// What every model's machine is made of. Includes Boost.MSM: only a model's own .cpp includes this.
//
// Why this exists: events, states and guards of a model are a name each, and a feed of a run's events to many small
// machines is the same for every lifecycle.
//
// Ownership   Values; a feed owns the machines of one run.
// Threading   One OS thread. Failure: an event without a transition is a violation, see `lifecycle`.
#pragma once

// Tables have more rows than Boost.MPL's preprocessed vectors.
#ifndef BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS
#define BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS
#define BOOST_MPL_LIMIT_LIST_SIZE 40
#define BOOST_MPL_LIMIT_VECTOR_SIZE 40
#endif

#include <models/model.hpp>
#include <models/table.hpp>

#include <properties/invariants/id_table.hpp>
#include <sim/kernel/world.hpp>

#include <boost/msm/back/state_machine.hpp>
#include <boost/msm/front/functor_row.hpp>
#include <boost/msm/front/state_machine_def.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#define HOLDFAST_MODEL_EVENT(type, text)           \
  struct type {                                    \
    static constexpr std::string_view name = text; \
  }
#define HOLDFAST_MODEL_STATE(type, text)           \
  struct type : boost::msm::front::state<> {       \
    static constexpr std::string_view name = text; \
  }
#define HOLDFAST_MODEL_GUARD(type, text, condition)                                                             \
  struct type {                                                                                                 \
    static constexpr std::string_view name = text;                                                              \
    template <class Event, class Machine, class From, class To>                                                 \
    bool operator()([[maybe_unused]] const Event& event, [[maybe_unused]] Machine& machine, From&, To&) const { \
      return condition;                                                                                         \
    }                                                                                                           \
  }

namespace holdfast::models {

/// Front end of a machine: one event at a time, and nothing throws; no queues, so that a machine is a few bytes.
template <class Derived>
struct front_end : boost::msm::front::state_machine_def<Derived> {
  using no_message_queue = int;
  using no_exception_thrown = int;
  template <class Source, class Event, class Target, class Guard = boost::msm::front::none>
  using row = boost::msm::front::Row<Source, Event, Target, counted<Derived, Source, Event, Target, Guard>, Guard>;
  template <class Machine, class Event>
  void no_transition(const Event&, Machine&, int) {}
};

/// "Retiring, Empty": where a machine with `Axes` axes stands.
template <class Machine>
std::string standing(Machine& m, int axes) {
  // The back end numbers states in the order in which its table mentions them as sources, then as targets.
  using stt = typename Machine::stt;
  using states = typename boost::msm::back::generate_state_set<stt>::type;
  std::string out;
  for (int axis = 0; axis < axes; ++axis)
    boost::mpl::for_each<states, boost::mpl::make_identity<boost::mpl::_1>>(
        [&]<class State>(boost::mpl::identity<State>) {
          if (boost::msm::back::get_state_id<stt, State>::type::value != m.current_state()[axis]) return;
          if (!out.empty()) out += ", ";
          out += State::name;
        });
  return out;
}

/// A model whose objects are found by number: the front end's table, its feed and its machines. `Initial`: the first state
/// of each axis. Derived from by a class that turns events of the stream into events of the machine.
template <class FrontEnd, class... Initial>
class lifecycle : public model, public sim::check {
 public:
  using machine = boost::msm::back::state_machine<FrontEnd>;

  std::string_view name() const noexcept final { return name_; }
  std::string_view source() const noexcept final { return source_; }
  std::vector<transition> transitions() const final {
    return transitions_of<FrontEnd, typename FrontEnd::transition_table, boost::msm::front::none>();
  }
  std::vector<std::string_view> states() const final { return states_of(transitions()); }
  std::string dot() const final { return draw(name(), source(), {Initial::name...}, transitions()); }
  sim::check& feed() noexcept final { return *this; }

  std::string_view id() const noexcept final { return id_; }
  std::string_view sentence() const noexcept final { return sentence_; }
  std::vector<sim::event_kind> wants() const final {
    std::vector<sim::event_kind> out;
    for (const event_id kind : kinds_) out.push_back(sim::kind_of(kind));
    out.push_back(sim::kind_of(sim::hardware_event::host_crashed));
    return out;
  }
  void begin(sim::world&) final {
    for (machines& h : hosts_) h.forget();
    forget_all();
  }
  void on_event(sim::world& w, const sim::logged_event& e) final {
    if (e.host == 0xffff) return;
    if (hosts_.size() <= e.host) hosts_.resize(std::size_t{e.host} + 1);
    if (e.kind == sim::hardware_event::host_crashed) {
      hosts_[e.host].forget();
      forget_host(e.host);
      return;
    }
    ++evaluated;
    see(w, e, static_cast<event_id>(e.kind));
  }

 protected:
  lifecycle(std::string_view name, std::string_view source, std::string_view sentence,
            std::initializer_list<event_id> kinds)
      : name_(name), source_(source), id_("model " + std::string(name)), sentence_(sentence), kinds_(kinds) {
    prototype_.start();
  }

  virtual void see(sim::world& w, const sim::logged_event& e, event_id kind) = 0;
  virtual void forget_all() {}
  virtual void forget_host(std::uint16_t) {}

  /// A new object in its first state, also if there was one of that number.
  machine& born(const sim::logged_event& e, std::uint64_t object) {
    machines& h = hosts_[e.host];
    h.by_id[object] = static_cast<std::uint32_t>(h.all.size());
    h.all.push_back(prototype_);
    return h.all.back();
  }
  machine* find(const sim::logged_event& e, std::uint64_t object) {
    machines& h = hosts_[e.host];
    const std::uint32_t* const index = h.by_id.find(object);
    return index != nullptr ? &h.all[*index] : nullptr;
  }
  /// Something happened to an object; nothing, if the object is not known.
  template <class Event>
  void happened(sim::world& w, const sim::logged_event& e, std::uint64_t object, const Event& event) {
    machine* const m = find(e, object);
    if (m == nullptr) return;
    ++exercised;
    if ((m->process_event(event) & boost::msm::back::HANDLED_TRUE) != 0) return;
    w.violate(id(), name_ + " " + std::to_string(object) + " of host " + host_name(w, e.host) + " met \"" +
                        std::string(Event::name) + "\" in " + standing(*m, sizeof...(Initial)));
  }
  static std::string host_name(sim::world& w, std::uint16_t host) {
    return host < w.hosts().size() ? w.hosts()[host]->name() : std::to_string(host);
  }

 private:
  struct machines {
    invariants::id_table<std::uint32_t> by_id;
    std::vector<machine> all;
    void forget() {
      by_id.forget();
      all.clear();
    }
  };

  const std::string name_;
  const std::string_view source_;
  const std::string id_;
  const std::string_view sentence_;
  const std::vector<event_id> kinds_;
  machine prototype_;
  std::vector<machines> hosts_;
};

/// Objects that events name by their block until a map has answered, and by the region of that answer afterwards.
template <class FrontEnd, class... Initial>
class lifecycle_of_regions : public lifecycle<FrontEnd, Initial...> {
 protected:
  using base = lifecycle<FrontEnd, Initial...>;
  using base::base;

  void mapped(const sim::logged_event& e, std::uint64_t block, std::uint64_t region) {
    blocks_of(e.host)[region] = block;
  }
  typename base::machine* find_region(const sim::logged_event& e, std::uint64_t region) {
    const std::uint64_t* const block = blocks_of(e.host).find(region);
    return block != nullptr ? this->find(e, *block) : nullptr;
  }
  template <class Event>
  void of_region(sim::world& w, const sim::logged_event& e, std::uint64_t region, const Event& event) {
    if (const std::uint64_t* const block = blocks_of(e.host).find(region)) this->happened(w, e, *block, event);
  }

 private:
  void forget_all() final {
    for (auto& blocks : blocks_) blocks.forget();
  }
  void forget_host(std::uint16_t host) final { blocks_of(host).forget(); }
  invariants::id_table<std::uint64_t>& blocks_of(std::uint16_t host) {
    if (blocks_.size() <= host) blocks_.resize(std::size_t{host} + 1);
    return blocks_[host];
  }

  std::vector<invariants::id_table<std::uint64_t>> blocks_;  // by region
};

}  // namespace holdfast::models
