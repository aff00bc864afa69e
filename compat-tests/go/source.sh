#!/bin/bash
# source.sh MODULE@VERSION : a copy of a Go module's source, tests and all, as `source` in this directory
set -eu
go mod download -json "$1" > module.json
cp -r "$(python3 -c 'import json; print(json.load(open("module.json"))["Dir"])')" source
chmod -R u+w source
