#include <models/model.hpp>

namespace holdfast::models {

// One function for each model, defined in the model's own file.
model& arena_lifecycle();

std::vector<model*> all() { return {&arena_lifecycle()}; }

}  // namespace holdfast::models
