// Streams of events with one thing wrong, by subject: at least one for every invariant.
#pragma once

#include "told.hpp"

#include <functional>
#include <vector>

namespace holdfast::sim::streams {

struct wrong {
  const char* invariant;  // that names it first
  const char* what;
  std::function<void(told&)> tell;
};

std::vector<wrong> wrong_world();
std::vector<wrong> wrong_budget();
std::vector<wrong> wrong_arenas();
std::vector<wrong> wrong_spans();
std::vector<wrong> wrong_pools();
std::vector<wrong> wrong_looks();
std::vector<wrong> wrong_operations();
std::vector<wrong> wrong_connections();
std::vector<wrong> wrong_progress();
std::vector<wrong> wrong_models();
/// Of all subjects.
std::vector<wrong> all_wrong();

}  // namespace holdfast::sim::streams
