#!/bin/bash
# The base primitives under every schedule with so many preemptions: three fibers, two operations each. What takes more
# than a few seconds at three preemptions is explored with two or one here, and with three by `holdfast-sim explore`.
set -euo pipefail
sim=$HOLDFAST_BIN/holdfast-sim
while read -r scenario preemptions; do
  out=$("$sim" explore "$scenario" --preemptions "$preemptions" 2>&1) || { echo "$out"; exit 1; }
  echo "$scenario: $out"
  case $out in
    *" 0 violations; that is all of them"*) ;;
    *) echo "wrong: the exploration of $scenario did not finish"; exit 1 ;;
  esac
done <<'TABLE'
base-gate 3
base-extent 3
base-generation 3
base-ledger 2
base-wait 2
base-turn 1
TABLE
