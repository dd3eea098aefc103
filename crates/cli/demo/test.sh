#!/usr/bin/env bash
# Checks total.sh. Prints a line per check and fails if one of them does.

case $0 in */*) cd "${0%/*}" || exit 1 ;; esac
failed=0

check() {
  local name=$1 ledger=$2 expected=$3 got
  got=$(printf '%b' "$ledger" | bash total.sh)
  if [ "$got" = "$expected" ]; then
    echo "ok     $name"
  else
    echo "FAILED $name: expected $expected, got $got"
    failed=1
  fi
}

check "an empty ledger" "" 0
check "two entries" "tea 3\nmilk 2\n" 5
check "a last line without a line end" "tea 3\nmilk 2" 5

exit "$failed"
