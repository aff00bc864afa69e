#!/bin/bash
# setup.sh : librdkafka with its own test runner, built from the source that the crate rdkafka-sys carries
set -eu
room=$OTTLA_CACHE/librdkafka-$RDKAFKA_SYS
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room/fetch/src"; cd "$room"
printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nrdkafka-sys = "=%s"\n[workspace]\n' \
  "${RDKAFKA_SYS%%+*}" > fetch/Cargo.toml
: > fetch/src/lib.rs
(cd fetch && cargo vendor -q vendor > /dev/null)
mv fetch/vendor/rdkafka-sys/librdkafka source; rm -rf fetch; cd source
# cargo vendor leaves out dot files and the executable bits; nothing else is missing
find . \( -name '*.sh' -o -name configure -o -name '*.py' \) -exec chmod +x {} +
chmod +x mklove/modules/*
./configure --disable-gssapi
make -j2 libs
make -C tests -j2 build
touch "$room/complete"
