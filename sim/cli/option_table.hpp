// Every command and option of holdfast-sim, once.
//
// Why this exists: help, validation and error messages must agree; they are made from this table.
//
// Ownership   Constants. Threading: any. Failure: none.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace holdfast::sim {

enum class option_kind : std::uint8_t {
  flag,      // no value
  count,     // a whole number, low to high
  duration,  // needs a unit: 60s, 250ms; low to high in nanoseconds
  seeds,     // A..B
  shard,     // I/N
  words,     // one of `value`, separated by |
  strategy,  // see portfolio.hpp and make_strategy.hpp
  setting,   // KEY=VALUE; sizes may have suffixes, durations units
  text,      // a name or path
};

struct option_description {
  std::string_view commands;  // " run campaign ", with spaces around
  std::string_view name;      // "--seed"; without dashes: by position
  option_kind kind;
  std::string_view value;    // what stands for the value in help
  std::string_view initial;  // empty: none
  std::uint64_t low, high;
  bool many;  // may be given more than once; by position: none or more
  bool required;
  std::string_view text;
};

struct command_description {
  std::string_view name;
  std::string_view text;
};

inline constexpr command_description command_table[] = {
    {"list", "What there is: scenarios, invariants, faults, models, reached"},
    {"run", "One run of a scenario"},
    {"campaign", "Many runs of many scenarios"},
    {"explore", "Every schedule of a small scenario with at most P preemptions"},
    {"replay", "Run traces again: each must end as its last line says for this core"},
    {"models", "The lifecycles, as pictures or as a list of transitions"},
};

inline constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();

inline constexpr option_description option_table[] = {
    // commands              name            kind                    value          initial     low  high        many   required text
    {" list ", "WHAT", option_kind::words, "scenarios|invariants|faults|models|reached", "", 0, 0, false, false,
     "only this; without it, everything"},
    {" run explore ", "SCENARIO", option_kind::text, "SCENARIO", "", 0, 0, false, true, "its name, see list"},
    {" campaign ", "SCENARIO", option_kind::text, "SCENARIO", "", 0, 0, true, false, "their names; without any, all"},
    {" replay ", "TRACE", option_kind::text, "TRACE", "", 0, 0, true, true, "trace files, .jsonl or .jsonl.zst"},

    {" run explore ", "--seed", option_kind::count, "N", "1", 0, any, false, false,
     "the seed of everything that is drawn"},
    {" campaign ", "--seeds", option_kind::seeds, "A..B", "1..1000", 0, any, false, false,
     "seeds of the runs, B included; with --for: 1.. without end"},
    {" campaign ", "--for", option_kind::duration, "TIME", "", 1'000'000, 1'000'000'000'000'000, false, false,
     "end after this much real time, as 60s"},
    {" campaign explore ", "--jobs", option_kind::count, "N", "1", 1, 256, false, false,
     "processes that share the work"},
    {" run ", "--strategy", option_kind::strategy, "S", "portfolio", 0, 0, false, false,
     "who chooses: portfolio (what a campaign uses for the seed), fifo, random, random:stay=N,time=N, "
     "pct:D, pct:D,K, exhaustive:P (its first schedule)"},
    {" campaign ", "--strategy", option_kind::strategy, "S", "portfolio", 0, 0, true, false,
     "who chooses: portfolio (a mix by scenario and seed), fifo, random, random:stay=N,time=N, pct:D, pct:D,K; several "
     "are used in turn"},
    {" campaign ", "--shard", option_kind::shard, "I/N", "1/1", 1, 1'000'000, false, false,
     "only every N-th seed, beginning with the I-th"},
    {" explore ", "--preemptions", option_kind::count, "P", "2", 0, 64, false, false,
     "at most so many in a schedule; with --faults and without this, the one schedule that fifo makes"},
    {" explore ", "--faults", option_kind::words, "each", "", 0, 0, false, false,
     "instead of the faults that the scenario plans, each kind at each point, at its first pass, its second ..."},
    {" run campaign explore ", "--set", option_kind::setting, "KEY=VALUE", "", 0, 0, true, false,
     "a parameter of the scenario; 64MiB and 250ms are numbers too"},
    {" run ", "--trace", option_kind::text, "FILE", "", 0, 0, false, false,
     "write a trace of the run, whatever its outcome; .zst compresses"},
    {" run replay ", "--events", option_kind::flag, "", "", 0, 0, false, false,
     "show what happened; with --trace, write it there"},
    {" replay ", "--until", option_kind::count, "N", "", 1, any, false, false, "stop after the event with this number"},
    {" run campaign explore ", "--traces", option_kind::text, "DIR", "traces-found", 0, 0, false, false,
     "where traces of violations go"},
    {" campaign ", "--stop-after", option_kind::count, "N", "100", 1, any, false, false,
     "end after so many violations"},
    {" campaign explore ", "--run-limit", option_kind::duration, "TIME", "120s", 1'000'000'000, 86'400'000'000'000,
     false, false, "real time of one run; one that takes longer is ended as a crash"},
    {" replay ", "--run-limit", option_kind::duration, "TIME", "600s", 1'000'000'000, 86'400'000'000'000, false, false,
     "real time of one run; one that takes longer is ended as a crash"},
    {" run campaign explore ", "--steps-max", option_kind::count, "N", "2000000", 1, any, false, false,
     "scheduling points of one run; more are a livelock"},
    {" campaign ", "--quiet", option_kind::flag, "", "", 0, 0, false, false, "violations and the last line only"},
    {" models ", "--dot", option_kind::text, "DIR", "", 0, 0, false, false, "write each as Graphviz text"},
    {" models ", "--svg", option_kind::text, "DIR", "", 0, 0, false, false, "write each as a picture, by Graphviz"},
    {" list run campaign explore replay models ", "--json", option_kind::flag, "", "", 0, 0, false, false,
     "one JSON document on standard output instead of text"},
};

/// What the contract of the tools names and this version does not have.
inline constexpr std::string_view later_commands[] = {"shrink", "explain", "check", "reconstruct", "merge", "report"};
inline constexpr std::string_view later_options[] = {"--store", "--guided", "--coverage"};

}  // namespace holdfast::sim
