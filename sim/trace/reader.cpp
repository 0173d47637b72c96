#include <sim/trace/reader.hpp>

#include <sim/trace/line_source.hpp>

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <limits>
#include <set>
#include <utility>

namespace holdfast::sim {

namespace {

using json = nlohmann::json;

// Thrown and caught within this file only: a wrong field may be found deep inside helper calls.
struct refused {
  std::string sentence;
};

[[noreturn]] void refuse(std::string sentence) { throw refused{std::move(sentence)}; }

// What may be shown of foreign bytes.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 60)) out += c >= ' ' && c < 127 ? c : '?';
  if (text.size() > 60) out += "...";
  return out;
}

std::string in_quotes(std::string_view text) { return "'" + printable(text) + "'"; }

// No line of the format nests deeper, and a deep one must not cost a deep stack somewhere else.
constexpr int depth_max = 4;

json parse_object(std::string_view line) {
  std::vector<std::set<std::string>> names;
  const auto watch = [&names](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth > depth_max) refuse("is nested too deeply");
      names.resize(static_cast<std::size_t>(depth) + 1);
      names.back().clear();
    } else if (event == json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      names.resize(static_cast<std::size_t>(depth));
      if (!names.back().insert(name).second) refuse("has the field " + in_quotes(name) + " twice");
    }
    return true;
  };
  json parsed;
  try {
    parsed = json::parse(line.begin(), line.end(), watch);
  } catch (const json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 7: ...": the line is ours to name.
    std::string_view what = e.what();
    if (const auto column = what.find("column "); column != what.npos) what.remove_prefix(column);
    std::string shown;
    for (const char c : what.substr(0, 120)) shown += c >= ' ' && c < 127 ? c : '?';
    refuse("is not JSON: " + shown);
  }
  if (!parsed.is_object()) refuse("is not a JSON object");
  return parsed;
}

// The fields of one object; each is taken once, and what was not taken at the end is unknown.
class fields {
 public:
  fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) refuse(where_ + " is not an object");
  }

  const json* find(const char* name) {
    taken_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  const json& get(const char* name) {
    const json* found = find(name);
    if (found == nullptr) refuse(where_ + " has no field '" + name + "'");
    return *found;
  }
  std::string text(const char* name) { return as_text(get(name), name); }
  std::uint64_t count(const char* name) { return as_count(get(name), name); }
  std::int64_t signed_number(const char* name) { return as_signed(get(name), name); }

  std::string as_text(const json& value, std::string_view name) const {
    if (!value.is_string()) refuse(described(name) + " is not a string");
    return value.get<std::string>();
  }
  std::uint64_t as_count(const json& value, std::string_view name) const {
    if (!value.is_number_unsigned()) refuse(described(name) + " is not a whole number from 0 to 2^64-1");
    return value.get<std::uint64_t>();
  }
  std::int64_t as_signed(const json& value, std::string_view name) const {
    constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const bool too_big = value.is_number_unsigned() && value.get<std::uint64_t>() > max;
    if (!value.is_number_integer() || too_big) {
      refuse(described(name) + " is not a whole number from -2^63 to 2^63-1");
    }
    return value.get<std::int64_t>();
  }
  const json& array(const char* name) {
    const json& value = get(name);
    if (!value.is_array()) refuse(described(name) + " is not a list");
    return value;
  }
  void nothing_else() const {
    for (const auto& [name, value] : object_.items()) {
      if (!taken_.contains(name)) refuse(where_ + " has the unknown field " + in_quotes(name));
    }
  }
  std::string described(std::string_view name) const { return "field " + in_quotes(name) + " of " + where_; }

 private:
  const json& object_;
  std::string where_;
  std::set<std::string, std::less<>> taken_;
};

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

trace_outcome outcome_named(const std::string& name, const std::string& described) {
  for (const auto known : {trace_outcome::clean, trace_outcome::violation, trace_outcome::crash}) {
    if (name == name_of(known)) return known;
  }
  refuse(described + " is " + in_quotes(name) + "; it may be clean, violation or crash");
}

trace_header read_header(fields& line) {
  // First of all: what a newer format means is not known here.
  if (const std::uint64_t format = line.count("format"); format > trace_format) {
    refuse("format " + std::to_string(format) + " is newer than this program, which reads format " +
           std::to_string(trace_format));
  } else if (format == 0) {
    refuse("there is no format 0");
  }
  trace_header out;
  out.title = line.text("title");
  out.why = line.text("why");
  out.scenario = line.text("scenario");
  const json& values = line.get("parameters");
  if (!values.is_object()) refuse("field 'parameters' of the header is not an object");
  for (const auto& [name, value] : values.items()) out.values[name] = line.as_signed(value, name);
  out.seed = line.count("seed");
  out.strategy = line.text("strategy");
  const json& config = line.get("config");
  if (!config.is_object()) refuse("field 'config' of the header is not an object");
  for (const auto& [name, value] : config.items()) {
    if (!value.is_number_integer() && !value.is_string()) {
      refuse("setting " + in_quotes(name) + " is neither a whole number nor a string");
    }
    out.config[name] = value.dump();
  }
  out.hardware = line.text("hardware");
  out.origin = line.text("origin");
  if (out.origin != "simulated" && out.origin != "recorded" && out.origin != "written") {
    refuse("field 'origin' of the header is " + in_quotes(out.origin) + "; it may be simulated, recorded or written");
  }
  out.core = line.text("core");
  if (!is_hexadecimal(out.core)) refuse("field 'core' of the header is no build id");
  for (const json& id : line.array("promises")) out.promises.push_back(line.as_text(id, "promises"));
  if (const json* steps = line.find("steps_max")) out.steps_max = line.as_count(*steps, "steps_max");
  return out;
}

op read_op(fields& line) {
  op out;
  out.who = line.text("who");
  out.what = line.text("what");
  const json& arguments = line.get("args");
  if (!arguments.is_object()) refuse("field 'args' of an op is not an object");
  for (const auto& [name, value] : arguments.items()) {
    if (value.is_string()) {
      out.words[name] = value.get<std::string>();
    } else {
      out.numbers[name] = line.as_signed(value, name);
    }
  }
  return out;
}

fault read_fault(fields& line) {
  fault out;
  out.where = line.text("where");
  out.host = line.text("host");
  out.nth = line.count("nth");
  out.times = line.count("times");
  if (out.nth == 0 || out.times == 0) refuse("fields 'nth' and 'times' of a fault count from 1");
  out.what = line.text("what");
  out.value = line.signed_number("value");
  return out;
}

// Four billion indices would not fit into any enabled set; the limit keeps an entry at 8 bytes.
std::uint32_t small(std::uint64_t value, const char* what) {
  if (value > std::numeric_limits<std::uint32_t>::max()) refuse(std::string(what) + " is beyond 32 bits");
  return static_cast<std::uint32_t>(value);
}

void read_choices(fields& line, recorded_choices& into) {
  if (const std::uint64_t first = line.count("first"); first != into.choices.size()) {
    refuse("field 'first' is " + std::to_string(first) + ", but " + std::to_string(into.choices.size()) +
           " choices came before");
  }
  for (const json& label : line.array("labels")) into.labels.push_back(line.as_text(label, "labels"));
  const json& pairs = line.array("c");
  if (pairs.empty()) refuse("a choices line without a choice");
  if (pairs.size() % 2 != 0) refuse("field 'c' is not made of pairs");
  if (pairs.size() > 2 * trace_choices_per_line_max) refuse("more than 4096 choices on a line");
  std::size_t checks = 0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    if (into.choices.size() % trace_check_interval == 0) ++checks;
    const std::uint32_t index = small(line.as_count(pairs[i], "c"), "an index");
    const std::uint32_t label = small(line.as_count(pairs[i + 1], "c"), "a label");
    if (label >= into.labels.size()) {
      refuse("label " + std::to_string(label) + " is not in the table of " + std::to_string(into.labels.size()));
    }
    into.choices.push_back({index, label});
  }
  const json& words = line.array("checks");
  if (words.size() != checks) {
    refuse("field 'checks' has " + std::to_string(words.size()) + " entries; these choices need " +
           std::to_string(checks));
  }
  for (const json& word : words) {
    const std::string text = line.as_text(word, "checks");
    if (text.size() != 8 || !is_hexadecimal(text)) refuse("a check is not 8 hexadecimal digits");
    into.checks.push_back(static_cast<std::uint32_t>(std::stoul(text, nullptr, 16)));
  }
}

void read_event(fields& line, std::uint64_t& last) {
  const std::uint64_t number = line.count("n");
  if (number <= last) refuse("event numbers must rise, and " + std::to_string(number) + " does not");
  last = number;
  if (line.signed_number("t") < 0) refuse("field 't' of an event is negative");
  line.text("who");
  line.text("event");
  const json& values = line.get("fields");
  if (!values.is_object()) refuse("field 'fields' of an event is not an object");
  for (const auto& [name, value] : values.items()) {
    if (!value.is_number_integer() && !value.is_boolean() && !value.is_string()) {
      refuse("field " + in_quotes(name) + " of an event is neither a whole number, a flag nor a name");
    }
  }
}

trace_end read_end(fields& line) {
  trace_end out;
  out.outcome = outcome_named(line.text("outcome"), "field 'outcome'");
  if (out.outcome == trace_outcome::violation) {
    out.invariant = line.text("invariant");
    out.message = line.text("message");
    out.event = line.count("event");
  } else if (out.outcome == trace_outcome::crash) {
    out.signal = line.text("signal");
  }
  out.core = line.text("core");
  if (line.find("on_clean_core") != nullptr) {
    out.on_clean_core = outcome_named(line.text("on_clean_core"), "field 'on_clean_core'");
    if (out.core == "clean") refuse("field 'on_clean_core' belongs to a mutant's trace; this one is of the clean core");
  }
  out.steps = line.count("steps");
  out.time_ns = line.signed_number("time_ns");
  if (out.time_ns < 0) refuse("field 'time_ns' is negative");
  out.fingerprint = line.text("fingerprint");
  if (!out.fingerprint.empty() && (out.fingerprint.size() != 32 || !is_hexadecimal(out.fingerprint))) {
    refuse("field 'fingerprint' is not 32 hexadecimal digits");
  }
  return out;
}

enum class kind : std::uint8_t { header, op, fault, choices, event, end };
constexpr const char* kind_names[] = {"header", "op", "fault", "choices", "event", "end"};

kind kind_named(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kind_names); ++i) {
    if (name == kind_names[i]) return static_cast<kind>(i);
  }
  refuse("there is no line " + in_quotes(name) + "; there are header, op, fault, choices, event and end");
}

class builder {
 public:
  // False after the end line.
  void take(std::string_view text) {
    if (ended_) refuse("comes after the end line");
    const json object = parse_object(text);
    fields line(object, "the line");
    const kind is = kind_named(line.text("line"));
    if (!started_ && is != kind::header) refuse("a trace begins with a header line");
    if (started_ && is == kind::header) refuse("a second header line");
    if (is < last_) {
      refuse(std::string("a line '") + kind_names[static_cast<int>(is)] + "' cannot follow a line '" +
             kind_names[static_cast<int>(last_)] + "'");
    }
    started_ = true;
    last_ = is;
    switch (is) {
      case kind::header: out.header = read_header(line); break;
      case kind::op: out.what.ops.push_back(read_op(line)); break;
      case kind::fault: out.what.faults.push_back(read_fault(line)); break;
      case kind::choices: read_choices(line, out.choices); break;
      case kind::event:
        read_event(line, last_event_);
        ++out.events;
        break;
      case kind::end:
        out.end = read_end(line);
        ended_ = true;
        break;
    }
    line.nothing_else();
  }
  bool ended() const noexcept { return ended_; }

  trace_file out;

 private:
  bool started_ = false;
  bool ended_ = false;
  kind last_ = kind::header;
  std::uint64_t last_event_ = 0;
};

}  // namespace

std::expected<trace_file, std::string> read_trace(const std::string& path) {
  auto source = line_source::open(path);
  if (!source) return std::unexpected(source.error());
  builder made;
  std::string_view line;
  for (;;) {
    const auto more = source->next(line);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    try {
      made.take(line);
    } catch (const refused& r) {
      return std::unexpected(source->complain(source->number(), r.sentence));
    }
  }
  if (source->number() == 0) return std::unexpected(path + ":1: the file is empty");
  if (!made.ended())
    return std::unexpected(source->complain(source->number(), "the file breaks off here: no end line follows"));
  return std::move(made.out);
}

}  // namespace holdfast::sim
