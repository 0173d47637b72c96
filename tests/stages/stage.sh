#!/bin/bash
# Builds another preset and runs the part of the tests that it is there for. One ctest entry of the
# release tree, so that one summary covers everything.
set -euo pipefail
cd "$(dirname "$0")/../.."

stage=${1:?usage: stage.sh asan|tsan|clang|fuzz}
jobs=${HOLDFAST_JOBS:-$(nproc)}
# ctest handed these to us for the release tree; the inner ctest sets its own.
unset HOLDFAST_BIN HOLDFAST_BUILD HOLDFAST_SANITIZE

build() { # build PRESET TARGET...
  local preset=$1
  shift
  echo "==> $preset: configure"
  cmake --preset "$preset" >"build/$preset.log" 2>&1 || { cat "build/$preset.log" >&2; exit 1; }
  echo "==> $preset: build $*"
  cmake --build --preset "$preset" --parallel "$jobs" --target "$@"
}

mkdir -p build
case $stage in
  asan)
    build asan unit_real unit_sim conformance_real conformance_sim properties ucx_test processes_test holdfast-sim
    ctest --preset asan -L '^(unit|conformance|property|ucx|campaign|corpus)$' -j "$jobs"
    ;;
  tsan)
    # The real side has threads; on the simulated one each fiber is a thread to the tool.
    build tsan unit_real conformance_real ucx_test processes_test race_sim
    # Where the kernel randomizes more bits than this GCC's runtime has room for, it cannot start.
    fixed=()
    if setarch -R true 2>/dev/null; then
      fixed=(setarch -R)
    fi
    "${fixed[@]}" ctest --preset tsan -R '^(unit_real|conformance_real|ucx_test|processes_test|race_sim)$' -j "$jobs"
    ;;
  clang)
    build clang holdfast-sim unit_sim
    ctest --preset clang -L '^(unit|corpus)$' -j "$jobs"
    exec python3 tests/stages/fingerprint_agreement.py \
      build/release/bin/holdfast-sim build/clang/bin/holdfast-sim
    ;;
  fuzz)
    # Fuzzers only; the rest of this preset says nothing that asan did not say.
    build fuzz fuzzers
    ctest --preset fuzz -L '^fuzz$' -j "$jobs"
    ;;
  *)
    echo "stage.sh: no stage is called '$stage'; there are asan, tsan, clang and fuzz" >&2
    exit 2
    ;;
esac
