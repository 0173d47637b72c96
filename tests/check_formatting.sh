#!/bin/bash
# Every source is as clang-format leaves it; prints those that are not. Changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-format-19 >/dev/null; then
  echo "formatting: clang-format-19 is missing; ./dev setup installs it" >&2
  exit 1
fi
mapfile -t files < <(find core sim models properties tests -type f \( -name '*.cpp' -o -name '*.hpp' \) | LC_ALL=C sort)
if ! clang-format-19 --dry-run -Werror "${files[@]}"; then
  echo "formatting: ./dev check FILE... formats" >&2
  exit 1
fi
echo "formatting: ${#files[@]} files, clean"
