// Proves that the pictures of the models under docs/ are those of the tables that run, and that a machine notices
// what its table does not allow.

#include <models/model.hpp>
#include <sim/kernel/world.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace holdfast::models {
namespace {

std::string read(const std::string& name) {
  const char* const source = std::getenv("HOLDFAST_SOURCE");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/docs/models/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(models, are_drawn_in_the_documentation_as_they_are) {
  for (model* const m : all()) {
    const std::string name(m->name());
    EXPECT_EQ(read(name + ".dot"), m->dot()) << "docs/models/" << name
                                             << ".dot is stale: build/release/bin/holdfast-sim models --dot docs/models";
    const std::string picture = read(name + ".svg");
    for (const std::string_view state : m->states())
      EXPECT_NE(picture.find(">" + std::string(state) + "<"), std::string::npos)
          << "docs/models/" << name << ".svg does not show " << state;
  }
}

TEST(models, have_rows_that_say_what_they_do) {
  for (model* const m : all()) {
    EXPECT_FALSE(m->transitions().empty()) << m->name();
    for (const transition& row : m->transitions()) {
      EXPECT_FALSE(row.source.empty());
      EXPECT_FALSE(row.target.empty());
      EXPECT_FALSE(row.event.empty());
    }
    EXPECT_TRUE(m->dot().starts_with("// Generated"));
  }
}

class first_entry final : public sim::strategy {
 public:
  std::string_view name() const noexcept override { return "first"; }
  void begin(sim::world&) override {}
  std::uint32_t choose(sim::world&, const sim::choice_point&) override { return 0; }
};

// One arena: block 5, region and generation 7.
class arena_model : public testing::Test {
 protected:
  arena_model() : world_(sim::world_settings{}, strategy_) {
    world_.add_host("a");
    feed().begin(world_);
  }
  template <class... Fields>
  void tell(event_id id, Fields... fields) {
    sim::logged_event e;
    e.kind = sim::kind_of(id);
    e.host = 0;
    for (const std::uint64_t value : {static_cast<std::uint64_t>(fields)...}) e.fields[e.field_count++] = value;
    feed().on_event(world_, e);
  }
  static model& arena() {
    for (model* const m : all())
      if (m->name() == "arena") return *m;
    std::abort();
  }
  static sim::check& feed() { return arena().feed(); }
  std::string broken() const { return world_.violated() ? world_.violated()->message : ""; }

  void map() {
    tell(event_id::map_submitted, 5, 4096);
    tell(event_id::map_answered, 5, 7, 4096, 1);
  }
  void publish() { tell(event_id::arena_published, 7, 7, 4096, 4096, 0, 0); }

  first_entry strategy_;
  sim::world world_;
};

TEST_F(arena_model, counts_the_transitions_of_a_life) {
  const auto taken = [](std::string_view source, std::string_view event) {
    std::uint64_t sum = 0;
    for (const transition& row : arena().transitions())
      if (row.source == source && row.event == event) sum += row.taken;
    return sum;
  };
  const std::uint64_t before = taken("Retiring", "settled");
  map();
  tell(event_id::span_granted, 9, 7, 0, 1, 64);
  publish();
  tell(event_id::span_released, 9, 7, 0, 1);
  tell(event_id::arena_retired, 7, 7, 0, 0, 1);
  tell(event_id::unmap_submitted, 7, 7, 1);
  tell(event_id::unmap_answered, 7, 7, 0);
  tell(event_id::arena_settled, 7, 7, 4096, 0);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(taken("Retiring", "settled"), before + 1);
}

TEST_F(arena_model, knows_that_a_failed_map_leaves_nothing) {
  tell(event_id::map_submitted, 5, 4096);
  tell(event_id::map_answered, 5, 0, 0, 0);
  EXPECT_EQ(broken(), "");
}

TEST_F(arena_model, refuses_a_settle_without_a_confirmation) {
  map();
  publish();
  tell(event_id::arena_retired, 7, 7, 0, 0, 1);
  tell(event_id::arena_settled, 7, 7, 4096, 0);
  EXPECT_EQ(broken(), "arena 7 of host a met \"settled\" in Retiring, Fresh");
}

TEST_F(arena_model, refuses_a_cut_from_a_retired_arena) {
  map();
  publish();
  tell(event_id::arena_retired, 7, 7, 0, 0, 1);
  tell(event_id::span_granted, 9, 7, 0, 1, 64);
  EXPECT_EQ(broken(), "arena 7 of host a met \"span cut\" in Retiring, Fresh");
}

TEST_F(arena_model, lets_a_buffer_outlive_its_arena) {
  map();
  tell(event_id::span_granted, 9, 7, 0, 1, 64);
  publish();
  tell(event_id::arena_retired, 7, 7, 1, 0, 1);
  tell(event_id::unmap_submitted, 7, 7, 1);
  tell(event_id::unmap_answered, 7, 7, 0);
  tell(event_id::arena_settled, 7, 7, 4096, 0);
  tell(event_id::span_released, 9, 7, 0, 1);
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace holdfast::models
