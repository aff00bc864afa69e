#!/bin/bash
# run.sh FOLDER SECONDS [FLAG]... : runs the test programs in a folder one by one, each test alone, and prints a line
# for each test
set -u
folder=$1 seconds=$2
shift 2
cd "$WORK" || exit 2
for program in "$folder"/*; do
  name=$(basename "$program")
  timeout "$seconds" "$program" --test-threads 1 "$@" > "$name.log" 2>&1
  # what a test prints itself may stand between its name and its verdict
  awk -v program="$name" '
    match($0, /^test [A-Za-z0-9_:]+( - should panic)? \.\.\. /) { test = $2; $0 = substr($0, RLENGTH + 1) }
    test != "" && /(^|[^A-Za-z])(ok|FAILED|ignored)(, .*)?$/ {
      verdict[test] = /ok$/ ? "PASS" : /FAILED$/ ? "FAIL" : "SKIP"; order[++count] = test; test = ""
    }
    /panicked at/ && match($0, /^thread .([A-Za-z0-9_:]+)./) { about = $2; gsub(/[^A-Za-z0-9_:]/, "", about); getline; why[about] = $0 }
    END { for (at = 1; at <= count; at++) {
      name = order[at]; print verdict[name], program "::" name, (verdict[name] == "FAIL" ? "-- " why[name] : "") } }
  ' "$name.log"
  grep -q '^test result: ' "$name.log" || echo "$name was cut short" >&2
done
