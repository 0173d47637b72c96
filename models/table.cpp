#include <models/table.hpp>

namespace holdfast::models {

std::vector<std::string_view> states_of(const std::vector<transition>& rows) {
  std::vector<std::string_view> out;
  const auto add = [&out](std::string_view state) {
    if (std::find(out.begin(), out.end(), state) == out.end()) out.push_back(state);
  };
  for (const transition& row : rows) {
    add(row.source);
    add(row.target);
  }
  return out;
}

std::string draw(std::string_view name, std::string_view source, const std::vector<std::string_view>& initial,
                 const std::vector<transition>& rows) {
  std::string out;
  const auto quoted = [](std::string_view text) { return '"' + std::string(text) + '"'; };
  out +=
      "// Generated from the transition table of models/" + std::string(name) + ".cpp (" + std::string(source) + ").\n";
  out += "digraph " + quoted(name) + " {\n";
  out += "  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n";
  out += "  edge [fontname=\"sans-serif\", fontsize=10];\n";
  for (std::size_t i = 0; i < initial.size(); ++i) {
    const std::string point = "begin_" + std::to_string(i);
    out += "  " + point + " [shape=point, label=\"\"];\n  " + point + " -> " + quoted(initial[i]) + ";\n";
  }
  for (const std::string_view state : states_of(rows)) out += "  " + quoted(state) + ";\n";
  // One arrow for each pair of states, with all that leads along it: parallel arrows are hard to read.
  std::vector<bool> drawn(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (drawn[i]) continue;
    std::string label;
    for (std::size_t k = i; k < rows.size(); ++k) {
      if (rows[k].source != rows[i].source || rows[k].target != rows[i].target) continue;
      drawn[k] = true;
      label += rows[k].event;
      if (!rows[k].guard.empty()) label += " [" + std::string(rows[k].guard) + "]";
      label += "\\l";
    }
    out += "  " + quoted(rows[i].source) + " -> " + quoted(rows[i].target) + " [label=" + quoted(label) + "];\n";
  }
  out += "}\n";
  return out;
}

}  // namespace holdfast::models
