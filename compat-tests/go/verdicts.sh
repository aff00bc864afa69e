#!/bin/bash
# verdicts.sh LOG : a line for each test in what a Go test program printed under -test.v, but for those that consist of
# others. What a test said last is why it failed. One that was begun and did not end, because the time was over or the
# program broke, has failed too.
awk '
  /^=== RUN / { order[++count] = $3; verdict[$3] = "FAIL" }
  /^=== (RUN|NAME|CONT) / { running = $3 }
  /_test\.go:[0-9]+:/ { said = $0; sub(/^ +/, "", said); why[running] = said }
  /^panic: / && broken == "" { broken = $0 }
  # parts stand below the whole, four columns further in; a name may have slashes of its own
  /^ *--- (PASS|FAIL|SKIP): / {
    column = index($0, "-"); verdict[$3] = substr($2, 1, 4); ended[$3] = 1; last[column] = $3
    if (column > 1) whole[last[column - 4]] = 1
  }
  END {
    for (name in verdict) if (!ended[name] && name ~ /\//) whole[substr(name, 1, index(name, "/") - 1)] = 1
    for (at = 1; at <= count; at++) {
      name = order[at]
      # one that failed by itself, not in one of its parts, is told as well
      if (whole[name] && verdict[name] != "FAIL") continue
      if (whole[name]) {
        inside = 0
        for (part in verdict) if (index(part, name "/") == 1 && verdict[part] == "FAIL") inside = 1
        if (inside) continue
      }
      print verdict[name], name, (verdict[name] == "PASS" ? "" : "-- " (ended[name] ? why[name] : "did not end; " broken))
    }
  }
' "$1"
