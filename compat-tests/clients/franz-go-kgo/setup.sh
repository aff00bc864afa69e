#!/bin/bash
# setup.sh : franz-go's own tests of its package kgo, which its module carries, built into one program
set -eu
go=$(dirname "$(readlink -f "$0")")/../../go
room=$OTTLA_CACHE/franz-go-kgo-$FRANZ_GO
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
"$go/source.sh" "github.com/twmb/franz-go@$FRANZ_GO"
(cd source/pkg/kgo && go test -c -o "$room/kgo.test" .)
rm -rf source; touch complete
