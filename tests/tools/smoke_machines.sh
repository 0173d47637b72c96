#!/bin/bash
# holdfast-smoke on machines that are not like this one: little or no memory may be locked, the UCX library is broken,
# standard output or all standard descriptors are missing.
set -euo pipefail
smoke=$HOLDFAST_BIN/holdfast-smoke
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failed=0

say_wrong() { # say_wrong WHAT FILE...
  echo "wrong: $1" >&2
  shift
  cat "$@" >&2
  failed=1
}

# expect CODE PATTERN... : the last run ended with CODE, and its output has a line for each pattern.
expect() {
  local code=$1 pattern
  shift
  ((got == code)) || say_wrong "exit $got instead of $code" "$place/out" "$place/err"
  for pattern in "$@"; do
    grep -Eq "$pattern" "$place/out" || say_wrong "no line like: $pattern" "$place/out" "$place/err"
  done
}

run() {
  got=0
  timeout 120 "$@" >"$place/out" 2>"$place/err" </dev/null || got=$?
}

# As root the limit binds only without the privilege to exceed it.
unprivileged=()
if ((EUID == 0)); then
  command -v setpriv >/dev/null || { echo "setpriv (util-linux) is missing" >&2; exit 1; }
  unprivileged=(setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock)
fi
locking() { # locking KIB: holdfast-smoke --only host with that limit
  run bash -c 'ulimit -l "$1" && shift && exec "$@"' - "$1" "${unprivileged[@]}" "$smoke" --only host
}

locking 1024
expect 0 '^host +registration +ok' '^host +growth +ok' '^host +limit +ok +RLIMIT_MEMLOCK 1 MiB .*refused, nothing is charged' \
  '^host +shutdown +ok'
locking 64
expect 0 '^host +growth +ok' '^host +limit +ok +RLIMIT_MEMLOCK 64 KiB' '^host +shutdown +ok'
locking 0
expect 1 '^host +registration +failed +.*limit_exceeded' '^host +shutdown +ok'

# A file that is no library.
mkdir "$place/lib"
echo "not a library" >"$place/lib/libucp.so.0"
LD_LIBRARY_PATH=$place/lib run "$smoke" --only ucx
expect 1 '^ucx +library +absent +.*libucp'
LD_LIBRARY_PATH=$place/lib run "$smoke" --only ucx --only host
expect 0 '^ucx +library +absent' '^host +shutdown +ok'

# A library that is another one.
run "$smoke" --only ucx --ucx-library libdl.so.2
expect 1 '^ucx +library +absent'

# Nobody reads, and nothing is open.
got=0
timeout 120 "$smoke" --only host >/dev/full 2>"$place/err" </dev/null || got=$?
((got == 1)) || say_wrong "exit $got on a full disk" "$place/err"
run bash -c 'exec "$@" <&- 2>&-' - "$smoke" --only ucx --bytes 64KiB --seconds 100ms
expect 0 '^ucx +peer killed +ok'

exit "$failed"
