// What the scenarios of the base primitives share: one host, one subject, a few fibers, and a model that judges.
//
// Why this exists: a primitive's scenario is a list of ops on one object. Making the object on a fiber of its host,
// running the lanes, and giving back what a lane still holds when its ops are over (a shrunken plan may have lost its
// "leave") is the same for all of them.
//
// Ownership   The stage owns subject and model. The subject lives from `open` to `close`, on the host's main fiber.
// Threading   One OS thread. `open`, `run`, `lane_ended` and `close` run on fibers, outside kernel scope; what they
//             keep in the model is allocated in kernel scope.
// Failure     A broken promise is a violation named after the primitive.
#pragma once

#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/workload.hpp>

#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::sim {

/// An object of the program under test, in its host's heap. If the run is abandoned so is the object: nothing of it may
/// run afterwards, and the heap goes with the host.
template <class T>
class subject {
 public:
  template <class... Args>
  void make(Args&&... args) {
    object_ = new T(std::forward<Args>(args)...);
  }
  /// On a fiber of the host.
  void destroy() { delete std::exchange(object_, nullptr); }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

class base_stage : public interpreter {
 public:
  explicit base_stage(world& w, std::string_view invariant) : world_(w), invariant_(invariant) {}

  /// Makes the subject.
  virtual void open(platform::host& host) = 0;
  /// Does one step of the lane `who`.
  virtual step_result run(const std::string& who, const op& step) = 0;
  /// The lane has no more ops: what it holds is given back.
  virtual void lane_ended(const std::string& who) = 0;
  /// All lanes have ended: the last judgment, and the end of the subject.
  virtual void close() = 0;

  step_result execute(host& h, const op& step, std::uint64_t number) final;

  /// Violation unless `held`.
  void expect(bool held, std::string_view sentence);
  world& owner() noexcept { return world_; }
  const event_log& log() const noexcept { return *log_; }

 protected:
  event_log& log() noexcept { return *log_; }
  task_context context(const char* operation, cancellation* asked = nullptr) const noexcept {
    return task_context(*environment_, operation, asked);
  }
  std::size_t lanes() const noexcept { return left_.size(); }

 private:
  friend std::expected<std::shared_ptr<void>, std::string> start_stage(world&, std::shared_ptr<base_stage>,
                                                                       const plan&);
  void main(host& machine);

  world& world_;
  std::string invariant_;
  plan owned_plan_;
  std::optional<workload> work_;
  std::map<std::string, std::size_t> left_;  // ops of each lane
  latch done_;
  event_log* log_ = nullptr;
  const task_environment* environment_ = nullptr;
};

/// Runs the lanes of `what` on the host "m" with `stage`.
std::expected<std::shared_ptr<void>, std::string> start_stage(world& w, std::shared_ptr<base_stage> stage,
                                                              const plan& what);

/// Blocks a fiber until a root ended. Neither is a scheduling point of its own.
template <class T>
class awaited final : public task_completion<T> {
 public:
  explicit awaited(world& w) : world_(w) {}
  void completed(T value) noexcept override {
    value_.emplace(std::move(value));
    ended_.open(world_);
  }
  void dropped() noexcept override { ended_.open(world_); }
  /// Starts `root` on this thread. False: there was no memory for its frame; then it has ended.
  bool start(task<T>&& root) {
    if (start_here(std::move(root), *this)) return true;
    refused_ = true;
    ended_.open(world_);
    return false;
  }
  /// No memory, for the root or for something it awaits: nothing of the wait happened.
  bool out_of_memory() const {
    if (refused_) return true;
    return value_ && !value_->has_value() && failed_for_memory(value_->error());
  }
  /// None if the root was dropped.
  std::optional<T>& wait() {
    ended_.wait(world_);
    return value_;
  }

 private:
  world& world_;
  static bool failed_for_memory(const error& why) { return why.code == error_code::out_of_memory; }

  latch ended_;
  std::optional<T> value_;
  bool refused_ = false;
};

/// A small scenario of one stage: three lanes of two steps, drawn by a seed.
template <class Stage>
class base_scenario final : public scenario {
 public:
  std::string_view name() const noexcept override { return Stage::scenario_name; }
  std::string_view text() const noexcept override { return Stage::scenario_text; }
  bool small() const noexcept override { return true; }
  std::vector<parameter> describe_parameters() const override {
    return {{"threads", "fibers that use it at once", 3, 1, 8},
            {"steps", "steps of each", 2, 1, 100},
            {"extras",
             "1: with tasks, deadlines, cancellations and further threads; 0: the fewest calls, to be explored; 2: the "
             "seed says, odd ones have the fewest",
             2, 0, 2}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, Stage::scenario_name);
    const std::int64_t given = p.at("extras");
    const bool extras = given == 1 || (given == 2 && seed % 2 == 0);
    plan made;
    for (std::int64_t lane = 0; lane < p.at("threads"); ++lane) {
      const std::string who = "m/lane-" + std::to_string(lane);
      for (std::int64_t i = 0; i < p.at("steps"); ++i) made.ops.push_back(Stage::draw(draw, who, lane, i, extras));
    }
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    kernel_scope kernel;
    return start_stage(w, std::make_shared<Stage>(w), what);
  }
};

}  // namespace holdfast::sim
