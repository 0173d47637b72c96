#!/bin/bash
# Every planted bug dies in the ordinary campaign, leaves a trace, and that trace replays: as a violation on the mutant,
# clean on the real core. The gate's lost wakeup is PM-H42.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Patches from a copy: the traces of this run are not those of the tree.
cp "$HOLDFAST_SOURCE"/properties/mutants/*.patch "$dir"/
"$HOLDFAST_SOURCE"/properties/mutants/run --build "$HOLDFAST_BUILD" --dir "$dir"
for patch in "$dir"/*.patch; do
  id=$(basename "$patch" .patch)
  [ -s "$dir/traces/$id.jsonl" ] || { echo "wrong: $id left no trace"; exit 1; }
  "$HOLDFAST_BIN"/holdfast-sim replay "$dir/traces/$id.jsonl" >/dev/null || { echo "wrong: the trace of $id does not replay"; exit 1; }
done
