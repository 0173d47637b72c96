// Numbers of one generation issued by several fibers: none twice, none zero, rising for each fiber.
#include <sim/scenarios/base_stage.hpp>

#include <holdfast/base/generation.hpp>

#include <set>

namespace holdfast::sim {

namespace {

class generation_stage final : public base_stage {
 public:
  static constexpr std::string_view scenario_name = "base-generation";
  static constexpr std::string_view scenario_text = "fibers draw numbers of one generation";

  explicit generation_stage(world& w) : base_stage(w, "base generation") {}

  static op draw(random_stream&, const std::string& who, std::int64_t, std::int64_t, bool) {
    return {who, "issue", {}, {}};
  }

  std::optional<std::string> inspect(const op& step) const override {
    return step.what == "issue" ? std::nullopt : std::optional<std::string>("there is no such step; there is issue");
  }

  void open(platform::host&) override { source_.make(); }

  step_result run(const std::string& who, const op&) override {
    const std::uint64_t number = source_->issue();
    expect(number != 0, "0 is no number");
    kernel_scope kernel;
    expect(seen_.insert(number).second, "no number is issued twice");
    std::uint64_t& last = last_[who];
    expect(number > last, "numbers rise");
    last = number;
    return {true, number};
  }

  void lane_ended(const std::string&) override {}

  void close() override {
    expect(source_->issued() == seen_.size(), "every number was given to somebody");
    source_.destroy();
  }

 private:
  subject<generation> source_;
  std::set<std::uint64_t> seen_;
  std::map<std::string, std::uint64_t> last_;
};

}  // namespace

void add_base_generation_scenario() { add_scenario(std::make_unique<base_scenario<generation_stage>>()); }

}  // namespace holdfast::sim
