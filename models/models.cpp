#include <models/model.hpp>

namespace holdfast::models {

// One function for each model, defined in the model's own file.
model& arena_lifecycle();
model& connection_lifecycle();
model& endpoint_lifecycle();
model& operation_lifecycle();
model& registration_lifecycle();
model& reservation_lifecycle();
model& shutdown_lifecycle();
model& span_lifecycle();
model& transport_lifecycle();
model& worker_lifecycle();

std::vector<model*> all() {
  return {&arena_lifecycle(),        &connection_lifecycle(),  &endpoint_lifecycle(), &operation_lifecycle(),
          &registration_lifecycle(), &reservation_lifecycle(), &shutdown_lifecycle(), &span_lifecycle(),
          &transport_lifecycle(),    &worker_lifecycle()};
}

}  // namespace holdfast::models
