#!/bin/bash
# Every stored trace replays, and ends as its last line says. A corpus that is not there is a
# failure: an empty loop would be green for ever.
set -euo pipefail
shopt -s nullglob globstar
cd "$HOLDFAST_SOURCE"
traces=(traces/**/*.jsonl traces/**/*.jsonl.zst)
if ((${#traces[@]} == 0)); then
  echo "traces/ holds no trace: is this a whole checkout?" >&2
  exit 1
fi
exec "$HOLDFAST_BIN/holdfast-sim" replay "${traces[@]}"
