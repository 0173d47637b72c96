// How the simulator's benchmarks print their rows, and their median.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::bench {

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class sim_rows {
 public:
  void add(const char* id, double ours, const char* unit, double goal, bool met) {
    add(id, ours, unit, goal, met, "", 0, 0);
  }
  /// `ratio`: the median of ours by theirs, each pair from one round.
  void add(const char* id, double ours, const char* unit, double goal, bool met, const char* other, double theirs,
           double ratio) {
    nlohmann::json others = nlohmann::json::object();
    if (*other != '\0') others[other] = theirs;
    rows_.push_back({{"id", id},
                     {"ours", ours},
                     {"unit", unit},
                     {"others", std::move(others)},
                     {"ratio_to_best", *other != '\0' ? nlohmann::json(ratio) : nlohmann::json()},
                     {"goal", goal},
                     {"met", met}});
  }
  /// One document with --json, else one row a line.
  void print(int argc, char** argv) const {
    if (argc == 2 && std::strcmp(argv[1], "--json") == 0) {
      std::cout << rows_.dump() << '\n';
      return;
    }
    for (const auto& row : rows_) std::cout << row.dump() << '\n';
  }

 private:
  nlohmann::json rows_ = nlohmann::json::array();
};

}  // namespace holdfast::bench
