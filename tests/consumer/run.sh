#!/bin/bash
# Installs this tree and uses it as strangers do: one program for each side, and one that asks for
# both sides and must be refused when it is configured.
set -euo pipefail
here=$HOLDFAST_SOURCE/tests/consumer
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

quietly() { # quietly NAME COMMAND...: shows what a command printed only if it failed
  local log=$scratch/$1.log
  shift
  "$@" >"$log" 2>&1 || { echo "failed: $*" >&2; cat "$log" >&2; exit 1; }
}
configure() { # configure NAME
  cmake -S "$here/$1" -B "$scratch/$1" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
}

quietly install cmake --install "$HOLDFAST_BUILD" --prefix "$prefix"

# Nothing of the installed package may point back into the tree it was built from.
if grep -rlF "$HOLDFAST_SOURCE" "$prefix"/lib*/cmake; then
  echo "the installed package names the source tree (files above)" >&2
  exit 1
fi

quietly configure-real configure real
quietly build-real cmake --build "$scratch/real"
"$scratch/real/consumer"

quietly configure-simulator configure simulator
quietly build-simulator cmake --build "$scratch/simulator"
"$scratch/simulator/my-sim" list scenarios >"$scratch/list"
if ! grep -q consumer-scenario "$scratch/list"; then
  echo "my-sim does not list the scenario of the file it was built with; it lists:" >&2
  cat "$scratch/list" >&2
  exit 1
fi
# 5 = nothing violated, but two yielding fibers exercise no invariant.
code=0
"$scratch/simulator/my-sim" run consumer-scenario --seed 1 >"$scratch/run" 2>&1 || code=$?
if ((code != 0 && code != 5)); then
  echo "my-sim run consumer-scenario ended with $code:" >&2
  cat "$scratch/run" >&2
  exit 1
fi
echo "my-sim runs the scenario of its own file"

if configure both >"$scratch/both.log" 2>&1; then
  echo "a program that links both sides was configured; INTERFACE_HOLDFAST_SIDE has lost its effect" >&2
  exit 1
fi
if ! grep -q HOLDFAST_SIDE "$scratch/both.log"; then
  echo "a program that links both sides was refused, but for another reason:" >&2
  cat "$scratch/both.log" >&2
  exit 1
fi
echo "linking both sides is refused"
