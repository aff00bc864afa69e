#!/bin/bash
# setup.sh : rskafka's own integration tests, which its crate carries, but for those that produce with one client and
# read with another: they want a C library and a Java virtual machine inside, and each of those clients has a folder
set -eu
rust=$(dirname "$(readlink -f "$0")")/../../rust
room=$OTTLA_CACHE/rskafka-$RSKAFKA
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
"$rust/source.sh" rskafka "$RSKAFKA"
python3 - <<'PY'
import re

path = "source/Cargo.toml"
text = open(path).read()
for name in ("java_helper", "produce_consume", "rdkafka_helper", "test_helpers"):
    text = re.sub(rf'\[\[test\]\]\nname = "{name}"\npath = "[^"]*"\n', "", text)
for name in ("j4rs", "rdkafka", "criterion"):
    text = re.sub(rf"\[dev-dependencies\.{name}\]\n(?:[^\[\n].*\n|\]\n)*", "", text)
text = re.sub(r"\[\[bench\]\]\n(?:[^\[\n].*\n)*", "", text)
open(path, "w").write(text)
PY
# the release that its lock file names is refused by the Rust of today
cargo update -q --manifest-path source/Cargo.toml -p rsasl --precise "$RSKAFKA_RSASL"
"$rust/build.sh" --features full
touch complete
