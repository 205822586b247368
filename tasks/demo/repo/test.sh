#!/usr/bin/env bash
# The tests: exits with 1 when one fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

passed=0 failed=0

# check EXPECTED VERSION...: the newest of the versions must be the expected one.
check() {
  local expected=$1 actual
  shift
  actual=$(printf '%s\n' "$@" | bash latest.sh 2>&1)
  if [[ $actual == "$expected" ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL: newest of [$*] is $expected, but got $actual"
  fi
}

check v1.2.0 v1.2.0
check v1.3.0 v1.2.9 v1.3.0 v1.1.5
check 2.0.0 2.0.0-rc.1 2.0.0 1.9.0
check 1.2.1 1.2 1.2.1
check v1.10.0 v1.9.0 v1.10.0 v1.2.0
check v12.0.1 v9.8.7 v12.0.1

echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
