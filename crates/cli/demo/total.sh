#!/usr/bin/env bash
# Adds up a ledger: reads lines of "name amount" from standard input and prints the total.

total=0
while read -r _ amount; do
  total=$((total + amount))
done
echo "$total"
