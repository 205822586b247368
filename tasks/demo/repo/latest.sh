#!/usr/bin/env bash
# Prints the newest version of those on standard input, one a line:
#   git tag | ./latest.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/version.sh"

newest=
while read -r version; do
  [[ -n $version ]] || continue
  if [[ -z $newest || $(version_compare "$version" "$newest") == 1 ]]; then
    newest=$version
  fi
done

if [[ -z $newest ]]; then
  echo "latest.sh: no version on standard input" >&2
  exit 1
fi
echo "$newest"
