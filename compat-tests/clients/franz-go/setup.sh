#!/bin/bash
# setup.sh : our checks on franz-go's kgo and kadm, built into one program
set -eu
room=$OTTLA_CACHE/franz-go-$FRANZ_GO
here=$(dirname "$(readlink -f "$0")")
stamp=$(cat "$here"/*.go | sha256sum | cut -c1-16)
[ -f "$room/$stamp" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cp "$here"/*.go "$room"; cd "$room"
go mod init checks
go get "github.com/twmb/franz-go@$FRANZ_GO" "github.com/twmb/franz-go/pkg/kadm@$FRANZ_GO_KADM"
go build -o checks .
touch "$stamp"
