#include <holdfast/platform/abi.hpp>

#include "info/findings.hpp"

#include "tool/program.hpp"

#include <holdfast/options/value.hpp>

#include <algorithm>

namespace holdfast::info {

namespace {

constexpr std::size_t columns = 80;
constexpr std::size_t title_column = 20;

std::string count(std::uint64_t n) { return std::to_string(n); }

class page {
 public:
  void heading(std::string_view text) { out_.append("\n").append(text).append("\n"); }
  /// A title and what is said of it, wrapped behind it.
  void row(std::string_view title, std::string_view text) {
    std::string line = "  " + std::string(title);
    line.resize(std::max(title_column, line.size() + 1), ' ');
    out_ += line + tool::wrapped(text, title_column, columns) + "\n";
  }
  void line(std::string_view text) { out_.append(text).append("\n"); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string lanes_text(const std::vector<lane>& lanes, bool allowed) {
  std::string out;
  for (const lane& one : lanes) {
    if (one.allowed != allowed) continue;
    if (!out.empty()) out += ", ";
    out.append(one.transport).append("/").append(one.device);
  }
  return out;
}

void add_backends(page& out, const findings& all) {
  out.heading("Backends");
  for (const backend& one : all.backends) {
    std::string text = one.found ? "found: " : "absent: ";
    if (!one.version.empty()) text += "version " + one.version + ", ";
    out.row(one.kind, text + one.text);
    if (const std::string used = lanes_text(one.lanes, true); !used.empty()) out.row("", "uses " + used);
    if (const std::string unused = lanes_text(one.lanes, false); !unused.empty())
      out.row("", "there, but not in use: " + unused);
  }
  for (const tool::nic& device : all.nics) {
    std::string text = "firmware " + device.firmware;
    for (const tool::nic_port& port : device.ports)
      text += "; port " + count(port.number) + " " + port.state + " (" + port.link + ")";
    out.row(device.name, text);
  }
}

void add_machine(page& out, const findings& all) {
  out.heading("Machine");
  out.row("system", all.system.name + ", " + all.system.architecture);
  out.row("processors", count(all.processors));
  out.row("memory", tool::about_bytes_text(all.memory_bytes));
  out.row("page size", tool::bytes_text(all.page_bytes));
  std::string huge;
  for (const tool::huge_page_pool& pool : all.huge_pages)
    huge += count(pool.pages) + " of " + tool::bytes_text(pool.page_bytes) + " (" + count(pool.free_pages) + " free), ";
  out.row("huge pages", huge + "transparent " +
                            (all.transparent_huge_pages.empty() ? "the kernel has none" : all.transparent_huge_pages));
  for (const tool::numa_node& node : all.numa_nodes)
    out.row("NUMA node " + count(node.id), "processors " + (node.processors.empty() ? "none" : node.processors) + ", " +
                                               tool::about_bytes_text(node.total_bytes) + ", " +
                                               tool::about_bytes_text(node.free_bytes) + " free");
  if (all.numa_nodes.empty()) out.row("NUMA nodes", "the kernel names none");
}

void add_process(page& out, const findings& all) {
  out.heading("This process");
  out.row("may lock", "RLIMIT_MEMLOCK " + tool::about_bytes_text(all.locked.soft_bytes) + ", hard limit " +
                          tool::about_bytes_text(all.locked.hard_bytes));
  out.row("CAP_IPC_LOCK", !all.may_lock_more   ? "unknown"
                          : *all.may_lock_more ? "yes: the kernel locks more than the limit"
                                               : "no: the limit binds");
  out.row("mappings", count(all.mappings.in_use) + " in use" +
                          (all.mappings.limit ? ", vm.max_map_count " + count(*all.mappings.limit) : ""));
  out.row("fork", all.pages_can_be_kept_from_children ? "registered pages can be kept from children (MADV_DONTFORK)"
                                                      : "registered pages cannot be kept from children: do not fork");
  out.row("mmap, munmap", all.memory_functions_patched ? "patched by a library" : "the system's own");
  for (const tool::signal_owner& signal : all.signals) out.row(signal.signal, signal.owner);
  if (all.ucx_variables.empty()) out.row("UCX variables", "none");
  for (const std::string& one : all.ucx_variables)
    out.row(&one == &all.ucx_variables.front() ? "UCX variables" : "", one);
}

void add_configuration(page& out, const findings& all) {
  namespace library = holdfast::options;
  const auto table = library::option_table();
  out.heading("Options (file: " + (all.file.empty() ? std::string("none") : all.file) + ")");
  std::size_t name_column = 0, value_column = 0;
  std::vector<std::string> values;
  for (std::size_t i = 0; i < table.size(); ++i) {
    values.push_back(library::print_value(table[i], all.configuration.of(static_cast<library::option_id>(i)).value));
    name_column = std::max(name_column, table[i].name.size());
    value_column = std::max(value_column, std::min<std::size_t>(values.back().size(), 20));
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto which = static_cast<library::option_id>(i);
    std::string line = "  " + std::string(table[i].name);
    line.resize(name_column + 4, ' ');
    line += values[i];
    line.resize(std::max(name_column + 4 + value_column, line.size()) + 2, ' ');
    // The variable and the argument follow from the name, and the line is full.
    const library::origin& from = all.configuration.of(which).from;
    line += from.from == library::origin_kind::file ? all.configuration.origin_text(which)
                                                    : std::string(library::name_of(from.from));
    out.line(line);
  }
}

}  // namespace

std::string to_text(const findings& all) {
  page out;
  out.line("Holdfast " + all.version + ", build " + (all.build.empty() ? "unknown" : all.build));
  if (!all.warnings.empty()) {
    out.heading("Warnings");
    for (const std::string& sentence : all.warnings) out.line("  " + tool::wrapped(sentence, 2, columns));
  }
  add_backends(out, all);
  add_machine(out, all);
  add_process(out, all);
  add_configuration(out, all);
  return out.take();
}

}  // namespace holdfast::info
