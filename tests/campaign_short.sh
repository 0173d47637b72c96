#!/bin/bash
# A campaign over every scenario with fixed seeds. Sanitized trees run fewer and do not ask that
# everything was reached (exit 5): they look for what the sanitizer sees.
set -euo pipefail
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
seeds=1..1500
if [[ -n ${HOLDFAST_SANITIZE:-} ]]; then
  seeds=1..150
fi
code=0
"$HOLDFAST_BIN/holdfast-sim" campaign --seeds "$seeds" --jobs 2 --traces "$traces" --quiet || code=$?
if ((code == 5)) && [[ -n ${HOLDFAST_SANITIZE:-} ]]; then
  code=0
fi
if ((code != 0)); then
  # The directory goes away with this script; what found the bug may not.
  for trace in "$traces"/*.jsonl; do
    [[ -e $trace ]] || continue
    mkdir -p "$HOLDFAST_BUILD/failed-traces"
    cp "$trace" "$HOLDFAST_BUILD/failed-traces/"
    echo "kept: $HOLDFAST_BUILD/failed-traces/$(basename "$trace")" >&2
  done
fi
exit "$code"
