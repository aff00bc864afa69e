#!/bin/bash
# build.sh [FLAG]... : builds the integration tests of `source` and leaves the programs in `tests`, nothing else
set -eu
(cd source && CARGO_TARGET_DIR=$PWD/../target cargo test --test '*' --no-run --message-format=json "$@") > build.json
mkdir -p tests
python3 - <<'PY'
import json
import shutil

for line in open("build.json"):
    message = json.loads(line)
    if message.get("executable") and message["target"]["kind"] == ["test"]:
        shutil.copy(message["executable"], "tests/" + message["target"]["name"])
PY
rm -rf source target build.json
