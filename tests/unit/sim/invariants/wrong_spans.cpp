// Streams with one thing wrong in spans and in what GETs do with them: grants, holds, lent buffers, references.
#include "lives.hpp"
#include "wrong.hpp"

namespace holdfast::sim::streams {

std::vector<wrong> wrong_spans() {
  return {
      {"PM-I3", "overlapping grants",
       [](told& t) {
         build(t);
         t.core(event_id::span_granted, 10, 7, 1, 1, 4096, 253);
       }},
      {"PM-I4", "a grant under a hold",
       [](told& t) {
         build(t);
         start_get(t);
         t.on_fiber(app).core(event_id::span_granted, 10, 7, 1, 1, 4096, 253);
       }},
      {"PM-I4", "a grant where the library still writes",
       [](told& t) {
         build(t);
         t.on_fiber(progress).device(hardware_event::driver_get_posted, 30, 50, 8192, 64, 1);
         t.on_fiber(app).core(event_id::span_granted, 10, 7, 2, 1, 4096, 253);
       }},
      {"PM-I5", "bytes past the buffer",
       [](told& t) {
         build(t);
         start_get(t);
         t.device(hardware_event::dma_write, 50, 4096, 1000, 70, 30, 1);
       }},
      {"PM-I6", "a grant after the unmap",
       [](told& t) {
         build(t);
         t.on_fiber(registration).device(hardware_event::nic_deregistered, 70, 50, mib).on_fiber(app);
         t.core(event_id::span_granted, 10, 7, 2, 1, 4096, 253);
       }},
      {"PM-I28", "a buffer that comes back while it is written",
       [](told& t) {
         build(t);
         start_get(t);
         t.core(event_id::buffer_returned, 9, 20, 0);
       }},
      {"PM-I28", "a reference to a buffer that is lent",
       [](told& t) {
         build(t);
         start_get(t);
         t.on_fiber(app).core(event_id::reference_made, 9, 7, 0, 5000, 1);
       }},
      {"PM-I29", "a hold dropped twice",
       [](told& t) {
         build(t);
         start_get(t);
         finish_get(t);
         t.core(event_id::hold_dropped, 9, 7, 0);
       }},
      {"PM-I29", "a hold that outlives its request",
       [](told& t) {
         build(t);
         start_get(t);
         t.device(hardware_event::driver_get_completed, 30, 0, 5000).device(hardware_event::driver_callback, 30, 0);
         t.core(event_id::operation_ended, 20, 1, 0).stuck();
       }},
      {"PM-I29", "a GET without a hold",
       [](told& t) {
         build(t);
         t.core(event_id::buffer_lent, 9, 20, 200).core(event_id::operation_accepted, 20, 100, 200, 5000, 0);
         t.on_fiber(progress).core(event_id::operation_submitted, 20, 3);
         t.device(hardware_event::driver_get_posted, 30, 50, 0, 5000, 1);
       }},
      {"PM-I32", "a refusal although there is room",
       [](told& t) {
         build(t);
         t.core(event_id::try_alloc_began, 1, 64)
             .core(event_id::try_alloc_ended, 1, 0, static_cast<std::uint64_t>(error_code::busy));
       }},
      {"PM-I33", "a buffer longer than its granules",
       [](told& t) {
         build(t);
         t.core(event_id::span_granted, 10, 7, 2, 1, 4097, 253);
       }},
      {"PM-I34", "quarantine left without a fence",
       [](told& t) {
         build(t);
         start_get(t);
         t.core(event_id::span_quarantined, 9, 7, 2).core(event_id::span_released, 9, 7, 0, 2, 256);
       }},
      {"PM-I40", "a span given back twice",
       [](told& t) {
         build(t);
         t.core(event_id::span_released, 9, 7, 0, 2, 256).core(event_id::span_released, 9, 7, 0, 2, 256);
       }},
      {"PM-I40", "a span outside its arena",
       [](told& t) {
         build(t);
         t.core(event_id::span_granted, 10, 7, 256, 1, 4096, 253);
       }},
      {"PM-I40", "granules that are in two places",
       [](told& t) {
         build(t);
         t.core(event_id::span_granted, 10, 7, 2, 1, 4096, 254);
       }},
      {"PM-I45", "a reference of another life",
       [](told& t) {
         build(t);
         t.core(event_id::hold_taken, 9, 7, 1).core(event_id::operation_accepted, 20, 100, 200, 5000, 0);
         t.core(event_id::buffer_lent, 9, 20, 201);
       }},
      {"PM-I49", "a reference to bytes past the buffer",
       [](told& t) { build(t).core(event_id::reference_made, 9, 7, 0, 5001, 1); }},
      {"PM-I49", "a reference to somebody else's bytes",
       [](told& t) { build(t).core(event_id::reference_made, 9, 7, 4096, 904, 1); }},
  };
}

}  // namespace holdfast::sim::streams
