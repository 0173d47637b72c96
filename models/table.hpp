// What a model does with its transition table: count, list, draw.
//
// Why this exists: the table is the only place where a lifecycle is written down. Counts and picture are taken from
// it by its types, so that they cannot disagree with what runs.
//
// Nothing of Boost.MSM is included here: it costs seconds, and only a model's own .cpp pays for it. A row is whatever
// has Source, Evt, Target and Guard; states, events and guards have a `name`.
//
// Ownership   Values. Threading: one OS thread. Failure: none.
#pragma once

#include <models/model.hpp>

#include <boost/mpl/for_each.hpp>
#include <boost/mpl/identity.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::models {

namespace detail {

/// How often the transition was taken. One number for each kind of row; the tag keeps equal rows of two models apart.
template <class Tag, class Source, class Event, class Target, class Guard>
inline std::uint64_t taken = 0;

template <class Guard>
constexpr std::string_view guard_name() noexcept {
  if constexpr (requires { Guard::name; })
    return Guard::name;
  else
    return {};
}

}  // namespace detail

/// The action of every row: counts it. `Tag` is the model's machine.
template <class Tag, class Source, class Event, class Target, class Guard>
struct counted {
  template <class E, class Machine, class From, class To>
  void operator()(const E&, Machine&, From&, To&) const noexcept {
    ++detail::taken<Tag, Source, Event, Target, Guard>;
  }
};

/// Rows of `Table` in order. A row whose target is `Stays` leaves the state as it is.
template <class Tag, class Table, class Stays>
std::vector<transition> transitions_of() {
  std::vector<transition> out;
  boost::mpl::for_each<Table, boost::mpl::make_identity<boost::mpl::_1>>([&out]<class Row>(boost::mpl::identity<Row>) {
    using source = typename Row::Source;
    using event = typename Row::Evt;
    using target = typename Row::Target;
    using guard = typename Row::Guard;
    transition t{source::name, event::name, detail::guard_name<guard>(), source::name,
                 detail::taken<Tag, source, event, target, guard>};
    if constexpr (!std::is_same_v<target, Stays>) t.target = target::name;
    // Boost.MSM says of a row that stays that its target is its source; the row itself was counted as it was written.
    if constexpr (std::is_same_v<target, source>) t.taken += detail::taken<Tag, source, event, Stays, guard>;
    out.push_back(t);
  });
  return out;
}

/// States in the order in which the rows mention them.
std::vector<std::string_view> states_of(const std::vector<transition>& rows);
/// The picture. `initial` are the states in which an object begins, one for each axis.
std::string draw(std::string_view name, std::string_view source, const std::vector<std::string_view>& initial,
                 const std::vector<transition>& rows);

}  // namespace holdfast::models
