#!/bin/bash
# run.sh HOST:PORT : franz-go's own tests of its package kgo, those that need a broker (the file `tests`); chains of
# 5000 records instead of 500 000
set -u
here=$(dirname "$(readlink -f "$0")")
tests=$(paste -sd '|' "$here/tests")
room=$OTTLA_CACHE/franz-go-kgo-$FRANZ_GO
cd "$WORK" || exit 2
export KGO_SEEDS=$1 KGO_TEST_RF=1 KGO_TEST_RECORDS=5000 KGO_LOG_LEVEL=none
go_test() { # go_test SECONDS LOG FLAG...
  timeout $(($1 + 10)) "$room/kgo.test" -test.v -test.timeout "$1s" -test.parallel 2 "${@:3}" > "$2" 2>&1
  "$here/../../go/verdicts.sh" "$2"
}
# TestTxnEtl apart: where its chains do not end, nothing else does beside them
go_test 180 tests.log -test.run "^($tests)\$" -test.skip '^TestTxnEtl$'
go_test 90 chains.log -test.run '^TestTxnEtl$'
