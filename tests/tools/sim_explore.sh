#!/bin/bash
# The base primitives under every schedule with at most three preemptions: three fibers, two operations each.
# (extras=0: the operations alone; cancellations, deadlines and further threads are the campaign's.)
# Then, with tasks, every fault at every pass: allocations by site, cancellations at each suspension.
set -euo pipefail
sim=$HOLDFAST_BIN/holdfast-sim
for scenario in base-gate base-extent base-generation base-ledger base-turn base-wait; do
  out=$("$sim" explore "$scenario" --preemptions 3 --set extras=0 2>&1) || { echo "$out"; exit 1; }
  echo "$scenario: $out"
  case $out in
    *" 0 violations; that is all of them"*) ;;
    *) echo "wrong: the exploration of $scenario did not finish"; exit 1 ;;
  esac
done
for scenario in base-gate base-ledger base-turn base-wait; do
  out=$("$sim" explore "$scenario" --faults each --set extras=1 2>&1) || { echo "$out"; exit 1; }
  echo "$scenario: ${out##*$'\n'}"
  case $out in
    *"fault heap:base.frame: tried at "*" 0 violations; that is all of them") ;;
    *) echo "wrong: not every fault of $scenario was tried: $out"; exit 1 ;;
  esac
done
