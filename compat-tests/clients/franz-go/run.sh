#!/bin/bash
# run.sh HOST:PORT : what Go programs do with franz-go, FRANZ_GO and FRANZ_GO_KADM; the checks are in the .go files
exec "$OTTLA_CACHE/franz-go-$FRANZ_GO/checks" "$1"
