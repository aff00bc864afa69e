#!/bin/bash
# source.sh CRATE VERSION : a copy of a crate's source, tests and all, as `source` in this directory
set -eu
mkdir -p fetch/src
printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n[workspace]\n' "$1" "$2" \
  > fetch/Cargo.toml
: > fetch/src/lib.rs
(cd fetch && cargo vendor -q vendor > /dev/null)
mv "fetch/vendor/$1" source; rm -rf fetch source/.cargo-checksum.json source/rust-toolchain.toml
