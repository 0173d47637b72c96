#!/bin/bash
# The rules of the house, checked on the text of the sources: which room may include which, who may
# name a driver, and what core may not use because the simulator could not see it.
#
# Arrows:   base, telemetry, options <- transport, pinned, binding, elastic <- rendezvous <- runtime
#           backends implement what the subsystems declare, and may include all but runtime.
#           sim, models and properties look at core; core never looks at them.
#
# usage: check_layering.sh [--self-test]      exit 0 clean, 1 rules broken
set -euo pipefail

# Comments and string literals are blanked first: a comment may speak of std::mutex, and a message of ucp_init.
rules=$(cat <<'AWK'
function complain(what, remedy) {
  printf "%s:%d: %s; %s\n", file, FNR, what, remedy
  broken++
}

# The first match of a whole word (an expression without anchors) in the line, or "".
function word(expression,    text, at, before, after, hit) {
  text = line
  while (match(text, expression)) {
    hit = substr(text, RSTART, RLENGTH)
    before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
    if (before !~ /[A-Za-z0-9_]/) return hit
    text = substr(text, RSTART + 1)
  }
  return ""
}

function strip(text,    out, c, two, i, n, quote) {
  out = ""
  n = length(text)
  for (i = 1; i <= n; i++) {
    two = substr(text, i, 2)
    if (in_comment) {
      if (two == "*/") { in_comment = 0; i++ }
      continue
    }
    if (two == "//") break
    if (two == "/*") { in_comment = 1; i++; continue }
    c = substr(text, i, 1)
    if (c == "\"" || (c == "'" && substr(text, i - 1, 1) !~ /[0-9A-Za-z]/)) {
      quote = c
      out = out c
      for (i++; i <= n; i++) {
        c = substr(text, i, 1)
        if (c == "\\") { i++; continue }
        if (c == quote) break
      }
      out = out quote
      continue
    }
    out = out c
  }
  return out
}

function room(path,    parts) {
  if (path !~ /^core\/holdfast\//) {
    split(path, parts, "/")
    return parts[1] == "core" ? "core/" parts[2] : parts[1]
  }
  split(path, parts, "/")
  return parts[4] == "" ? "top" : parts[3]
}

function finish_file() {
  if (file == "" || file !~ /^core\/holdfast\// || file ~ /[.]def$/) return
  if (first_include != "holdfast/platform/abi.hpp") {
    printf "%s:%d: the first include is %s; make it <holdfast/platform/abi.hpp>, or the names of this file miss their side\n",
      file, first_include_line ? first_include_line : 1, first_include == "" ? "missing" : "<" first_include ">"
    broken++
  }
  if (has_code && !has_namespace) {
    printf "%s:1: opens no namespace of its side; write `namespace holdfast::inline HOLDFAST_ABI {`\n", file
    broken++
  }
}

BEGIN {
  low = " base telemetry options platform top "
  may["base"] = low
  may["telemetry"] = low
  may["options"] = low
  may["transport"] = low "transport "
  may["pinned"] = low "pinned "
  may["binding"] = low "binding "
  may["elastic"] = low "elastic "
  may["rendezvous"] = low "transport pinned binding elastic rendezvous "
  may["backends"] = low "transport pinned binding elastic rendezvous backends "
  may["runtime"] = low "transport pinned binding elastic rendezvous backends runtime "
  may["top"] = low

  # The words that the contract of the platform is written in. They include nothing but each other.
  split("lock_class lock_ranks thread_annotations work_item", names, " ")
  for (i in names) vocabulary["holdfast/base/" names[i] ".hpp"] = 1

  # Exceptions, each with its reason. A ring index of the flight recorder orders nothing that a schedule could
  # expose, and a scheduling point in every event would drown the interesting ones.
  own_atomics["core/holdfast/telemetry/event_log.hpp"] = 1
  own_atomics["core/holdfast/telemetry/event_log.cpp"] = 1
}

FNR == 1 {
  finish_file()
  file = FILENAME
  in_comment = 0
  first_include = ""
  first_include_line = 0
  has_code = has_namespace = 0
  in_macro = 0
  here = room(file)
  core = file ~ /^core\/holdfast\//
  driver_allowed = here == "backends" || file !~ /^core\//
}

{
  included = ""
  if (!in_comment && match($0, /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]+[>"]/)) {
    included = substr($0, RSTART, RLENGTH)
    sub(/^[^<"]*[<"]/, "", included)
    sub(/[>"]$/, "", included)
    if (first_include == "") { first_include = included; first_include_line = FNR }
  }
  line = strip($0)

  directive = line ~ /^[ \t]*#/ || in_macro
  in_macro = directive && $0 ~ /\\$/
  if (!directive && line ~ /[^ \t]/) has_code = 1
  if (line ~ /namespace holdfast::inline HOLDFAST_ABI/) has_namespace = 1

  # ---- Who includes whom ----
  if (included != "") {
    if (file ~ /^core\// && included ~ /^(sim|models|properties|tests)\//)
      complain("core includes <" included ">", "core never looks at its simulator or its checks: move what it needs behind holdfast/platform")
    if (included ~ /^sim\/platform\/holdfast\// || (included ~ /^core\//))
      complain("includes <" included "> by its place in the tree", "write <holdfast/...>; the target chooses the side")
    if (core && included ~ /^holdfast\//) {
      split(included, parts, "/")
      target = parts[3] == "" ? "top" : parts[2]
      if (!(here in may))
        complain("core/holdfast/" here " is no room of the house", "give it a place among the arrows in tests/check_layering.sh")
      else if (index(may[here], " " target " ") == 0)
        complain(here " includes <" included ">", here " may include only" may[here] "; declare a contract in " here " and join them in runtime")
    }
    if (file ~ /^core\/platform\// && included ~ /^holdfast\// && included !~ /^holdfast\/platform\// && !(included in vocabulary))
      complain("the platform includes <" included ">", "the platform lies below core and may not know it")
    if (file ~ /^models\// && included ~ /^holdfast\/(transport|pinned|binding|elastic|rendezvous|runtime|backends)\//)
      complain("a model includes <" included ">", "a model that shares logic with core agrees with its bugs: use identifiers and events only")
    if (!driver_allowed && included ~ /^(ucp|uct|ucs|ucm|infiniband|rdma)\// || !driver_allowed && included ~ /^(cuda|cuda_runtime|cuda_runtime_api|nvml)[.]h$/)
      complain("includes the driver's header <" included ">", "only core/holdfast/backends names a driver: declare what you need as a contract there")
    if (core && included ~ /^(mutex|shared_mutex|thread|condition_variable|semaphore|latch|barrier|stop_token|future|random|unordered_map|unordered_set|iostream|boost\/asio[.]hpp|boost\/asio\/(io_context|strand|thread_pool|system_executor)[.]hpp)$/)
      complain("core includes <" included ">", "use the holdfast/platform header of that name, or see the rule for what it declares")
  }

  if (line !~ /[A-Za-z]/ || included != "") next

  # ---- Who names a driver ----
  if (!driver_allowed) {
    hit = word("(ucp|ucs|uct|ucm|ibv|rdma)_[A-Za-z0-9_]+")
    if (hit == "") hit = word("(UCP|UCS|UCT|IBV)_[A-Z][A-Z0-9_]*")
    if (hit == "") hit = word("(cu|cuda)[A-Z][A-Za-z0-9]+")
    if (hit ~ /^(UCX|HOLDFAST)/) hit = ""
    if (hit != "") complain("names the driver's " hit, "only core/holdfast/backends may: declare what you need as a contract and implement it there")
  }

  if (!core) next

  # ---- What the simulator could not see ----
  hit = word("std::(mutex|recursive_mutex|timed_mutex|recursive_timed_mutex|shared_mutex|shared_timed_mutex|thread|jthread|this_thread|condition_variable|condition_variable_any|atomic|atomic_[a-z_]+|counting_semaphore|binary_semaphore|latch|barrier|async|future|promise|call_once|once_flag)[^a-z_]")
  if (hit == "" && line ~ /std::(mutex|thread|atomic|condition_variable|shared_mutex)$/) hit = "std::..."
  sub(/[^A-Za-z_]$/, "", hit)
  if (file in own_atomics && hit ~ /^std::atomic/) hit = ""
  if (hit != "") complain("core uses " hit, "use holdfast/platform: the simulator schedules there, and is blind to std's")
  if (line ~ /_clock::now/) complain("core asks a clock of the standard library", "ask the platform::clock that was handed in")
  if (word("random_device") != "" || word("mt19937") != "" || word("std::rand") != "") complain("core draws a random number", "use platform::identity_seed; a run must replay")
  if (word("thread_local") != "") complain("core uses thread_local", "use platform::thread_slot: fibers share one OS thread")
  if (word("io_context") != "" || line ~ /asio::(strand|make_strand|thread_pool|system_executor|system_context)/)
    complain("core uses an Asio execution context or strand", "use platform::executor and its serial queue: Asio keeps per-thread call stacks that a fiber switch corrupts")
  if (word("unordered_(map|set|multimap|multiset)") != "") complain("core uses a hash table of the standard library", "use std::map, a sorted vector or extent_index: the order of a walk must not depend on addresses or hashes")
  if (line ~ /(is_simulated|HOLDFAST_SIM[^U])/) complain("core asks where it runs", "the build target chooses the world; put the difference behind holdfast/platform")
  if (word("asio::awaitable") != "" || line ~ /co_spawn/) complain("core uses Asio's coroutines", "use task<T> of holdfast/base: after a cancellation Asio's throws out of a later co_await")
  if (word("throw") != "" ) complain("core throws", "return std::expected with an error value")
  if (word("reinterpret_pointer_cast") != "") complain("core casts a shared owner", "name the owner's type")
}

END {
  finish_file()
  if (broken) { printf "layering: %d broken rules\n", broken; exit 1 }
}
AWK
)

# check ROOT: prints broken rules to stderr.
check() {
  local -a files
  local code=0
  cd "$1"
  mapfile -t files < <(find core sim models properties tests -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.def' \) \
    2>/dev/null | LC_ALL=C sort)
  # No pipe into grep -q: it ends at the first match, and the writer's broken pipe would count as a failure.
  if [[ " ${files[*]}" != *" core/holdfast/"* ]]; then
    echo "check_layering: core/holdfast holds no sources: is this a whole checkout?" >&2
    return 1
  fi
  LC_ALL=C awk "$rules" "${files[@]}" >&2 || code=$?
  if ((code == 0)); then
    echo "layering: ${#files[@]} files, clean"
  fi
  return "$code"
}

# A check that finds nothing may be a check that looks at nothing. Each rule gets its violation.
self_test() {
  local house wrong=0 count=0
  house=$(mktemp -d)
  trap 'rm -rf "$house"' RETURN
  local head=$'#include <holdfast/platform/abi.hpp>\n'
  local ns=$'namespace holdfast::inline HOLDFAST_ABI {\n'

  fresh() {
    rm -rf "${house:?}"/*
    mkdir -p "$house"/core/holdfast/{base,pinned,transport,telemetry,runtime,backends/ucx} "$house"/core/{platform,smoke} \
      "$house"/{sim,models}
    printf '%s#include <holdfast/base/gate.hpp>\n%s// std::mutex and ucp_init may be spoken of.\nint x = 1'"'"'000; char const* m = "std::mutex ucp_init";\n}\n' \
      "$head" "$ns" >"$house/core/holdfast/base/gate.cpp"
    printf '%s#include <ucp/api/ucp.h>\n%sucp_context_h c; }\n' "$head" "$ns" >"$house/core/holdfast/backends/ucx/table.hpp"
    printf '%s#define GUARDED(x) __attribute__((x))\n' "$head" >"$house/core/holdfast/base/macros.hpp"
    printf 'EVENT(a, b)\n' >"$house/core/holdfast/telemetry/events.def"
    printf '#include <mutex>\nstd::mutex m;\n' >"$house/core/platform/mutex.hpp"
  }
  plant() { # plant FILE TEXT: the planted line has to be reported by name
    fresh
    count=$((count + 1))
    printf '%s\n' "$2" >"$house/$1"
    local said
    if said=$(check "$house" 2>&1); then
      echo "not found in $1: $2" >&2
      wrong=$((wrong + 1))
    elif [[ $said != *"$1:"* ]]; then
      printf 'reported without its place in %s: %s\n%s\n' "$1" "$2" "$said" >&2
      wrong=$((wrong + 1))
    fi
  }

  fresh
  check "$house" >/dev/null || { echo "a clean house was refused" >&2; wrong=$((wrong + 1)); }

  local f=core/holdfast/base/a.cpp
  plant $f "${head}${ns}std::mutex m; }"
  plant $f "${head}${ns}std::shared_mutex m; }"
  plant $f "${head}${ns}std::atomic<int> m; }"
  plant $f "${head}${ns}std::jthread t; }"
  plant $f "${head}${ns}std::condition_variable c; }"
  plant $f "${head}${ns}auto t = std::chrono::steady_clock::now(); }"
  plant $f "${head}${ns}std::random_device r; }"
  plant $f "${head}${ns}thread_local int x; }"
  plant $f "${head}${ns}boost::asio::io_context c; }"
  plant $f "${head}${ns}boost::asio::strand<int> c; }"
  plant $f "${head}${ns}std::unordered_map<int, int> m; }"
  plant $f "${head}${ns}asio::awaitable<int> f(); }"
  plant $f "${head}${ns}void f() { throw 1; } }"
  plant $f "${head}${ns}ucp_context_h c; }"
  plant $f "${head}${ns}int c = UCS_OK; }"
  plant $f "${head}${ns}CUresult f() { return cuInit(0); } }"
  plant $f "${head}${ns}void f() { cudaFree(0); } }"
  plant $f "${head}${ns}void f() { ibv_dereg_mr(0); } }"
  plant $f "${head}#include <mutex>"$'\n'"${ns}}"
  plant $f "${head}#include <sim/kernel/world.hpp>"$'\n'"${ns}}"
  plant $f "${head}#include \"sim/kernel/world.hpp\""$'\n'"${ns}}"
  plant $f "${head}#include <infiniband/verbs.h>"$'\n'"${ns}}"
  plant $f "${head}#include <holdfast/pinned/arena.hpp>"$'\n'"${ns}}"
  plant $f "#include <vector>"$'\n'"${head}${ns}}"
  plant $f "${ns}int x; }"
  plant $f "${head}namespace holdfast { int x; }"
  plant core/holdfast/pinned/a.hpp "${head}#include <holdfast/transport/peer.hpp>"$'\n'"${ns}}"
  plant core/holdfast/transport/a.hpp "${head}#include <holdfast/pinned/arena.hpp>"$'\n'"${ns}}"
  plant core/holdfast/pinned/a.hpp "${head}#include <holdfast/backends/ucx/table.hpp>"$'\n'"${ns}}"
  plant core/holdfast/pinned/a.hpp "${head}#include <holdfast/runtime/runtime.hpp>"$'\n'"${ns}}"
  plant core/holdfast/backends/ucx/a.hpp "${head}#include <holdfast/runtime/runtime.hpp>"$'\n'"${ns}}"
  plant core/platform/a.hpp "#include <holdfast/base/gate.hpp>"
  plant core/holdfast/base/lock_class.hpp "${head}#include <holdfast/pinned/arena.hpp>"$'\n'"${ns}}"
  plant core/holdfast/telemetry/event_log.cpp "${head}${ns}std::mutex m; }"
  plant core/smoke/a.cpp "int x = ucp_init(0);"
  plant sim/a.cpp "#include <core/platform/clock.hpp>"
  plant sim/a.cpp "#include <sim/platform/holdfast/platform/clock.hpp>"
  plant models/a.cpp "#include <holdfast/pinned/arena.hpp>"

  echo "self-test: $count planted violations, $wrong wrong"
  ((wrong == 0))
}

case ${1:-} in
  "") check "$(dirname "${BASH_SOURCE[0]}")/.." ;;
  --self-test) self_test ;;
  *)
    echo "usage: check_layering.sh [--self-test]" >&2
    exit 2
    ;;
esac
