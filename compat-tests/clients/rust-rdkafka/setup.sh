#!/bin/bash
# setup.sh : rust-rdkafka's own integration tests, which its crate carries
set -eu
rust=$(dirname "$(readlink -f "$0")")/../../rust
room=$OTTLA_CACHE/rust-rdkafka-$RUST_RDKAFKA
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
"$rust/source.sh" rdkafka "$RUST_RDKAFKA"
# two places have the usual address written into them
sed -i 's/\.set("bootstrap.servers", "localhost")/.set("bootstrap.servers", \&std::env::var("KAFKA_HOST").unwrap())/' \
  source/tests/test_high_producers.rs
sed -i 's/port(), 9092)/port().to_string(), std::env::var("KAFKA_HOST").unwrap().rsplit(":").next().unwrap())/' \
  source/tests/test_metadata.rs
"$rust/build.sh" --locked
touch complete
