#!/bin/bash
# The long form of processes_test with the sanitizers' options of the tests: soak.sh PROGRAM SECONDS SEED
set -euo pipefail
cd "$(dirname "$0")/../.."

supp=$PWD/tests/sanitizers
export ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1:check_initialization_order=1
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$supp/leak.supp:print_suppressions=0
export TSAN_OPTIONS=halt_on_error=0:exitcode=66:second_deadlock_stack=1:suppressions=$supp/thread.supp
exec "$1" --soak "$2" --seed "$3"
