#!/bin/bash
# Every schedule of the small races of pinned memory with at most P preemptions, each scenario to its end.
#
# usage: explore_races.sh P [SCENARIO...]; the simulator's program is in $HOLDFAST_BIN
set -euo pipefail
preemptions=$1
shift
(($# > 0)) || set -- cut-against-retire sweep-against-allocation hold-against-shutdown publish-against-close two-misses
code=0
for scenario in "$@"; do
  said=$("$HOLDFAST_BIN/holdfast-sim" explore "$scenario" --preemptions "$preemptions" | tail -n 1)
  echo "$scenario: $said"
  [[ $said == *" 0 violations; that is all of them" ]] || code=1
done
exit "$code"
