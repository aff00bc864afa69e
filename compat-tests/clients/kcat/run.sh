#!/bin/bash
# run.sh HOST:PORT : command lines of kcat (Debian's, on librdkafka 2.0.2) and what they must print.
# Prints "PASS name" or "FAIL name -- why". The topic is made by the first produce.
set -u
bootstrap=${1:?usage: $0 host:port}
cd "$WORK" || exit 2
topic=kcat-$$
kcat="timeout 40 kcat -b $bootstrap"
group="timeout 40 kcat -b $bootstrap -q -X auto.offset.reset=earliest -X session.timeout.ms=6000"
newline=$'\n'

check() { # check NAME GOT WANTED
  if [ "$2" == "$3" ]; then echo "PASS $1"; else printf 'FAIL %s -- want %q, got %q\n' "$1" "$3" "$2"; fi
}
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }
produce() { $kcat -q -P -t "$@"; }
consume() { $kcat -q -C -t "$@"; }

# --- produce, consume, metadata ------------------------------------------------------------------------------
printf 'a\nb\nc\n' | produce $topic -p 0 -X acks=all
check produce $? 0
check consume-format "$(consume $topic -p 0 -e -f '%t %p %o %s\n')" \
  "$topic 0 0 a${newline}$topic 0 1 b${newline}$topic 0 2 c"
check metadata "$($kcat -L -t $topic | grep -c "topic \"$topic\" with 4 partitions")" 1
check metadata-json "$($kcat -L -J -t $topic | json 'd["topics"][0]["topic"], len(d["brokers"])')" "$topic 1"
check list-topics "$($kcat -L | grep -c "topic \"$topic\"")" 1

# --- keys, headers, nulls ------------------------------------------------------------------------------------
printf 'k1:v1\n' | produce $topic -p 0 -K: -H h=x
check key-json "$(consume $topic -p 0 -o 3 -c 1 -J | json 'd["key"], d["payload"], d["headers"], d["offset"]')" \
  "k1 v1 ['h', 'x'] 3"
printf 'k2:\n' | produce $topic -p 0 -K: -Z
check tombstone "$(consume $topic -p 0 -o 4 -c 1 -f '%k %S\n')" 'k2 -1'
printf ':\n' | produce $topic-empty -p 0 -K:
check empty-key-and-value "$(consume $topic-empty -p 0 -e -f '%K %S')" '0 0'

# --- offsets and times ---------------------------------------------------------------------------------------
check tail "$(consume $topic -p 0 -o -2 -e -f '%o ')" '3 4 '
check count "$(consume $topic -p 0 -o beginning -c 2 -f '%s ')" 'a b '
check from-offset "$(consume $topic -p 0 -o 1 -c 2 -f '%s ')" 'b c '
check query-begin "$($kcat -Q -t $topic:0:-2)" "$topic [0] offset 0"
check query-end "$($kcat -Q -t $topic:0:-1)" "$topic [0] offset 5"
check query-time "$($kcat -Q -t $topic:0:1600000000000) $($kcat -Q -t $topic:0:4000000000000)" \
  "$topic [0] offset 0 $topic [0] offset -1"
check from-time "$(consume $topic -p 0 -o s@1600000000000 -e -f '%o ')" '0 1 2 3 4 '
check out-of-range "$(consume $topic -p 0 -o 1000 -e -X auto.offset.reset=latest -f '%s' | wc -c)" 0

# --- codecs; idempotence; partitioner; limits ----------------------------------------------------------------
for codec in gzip snappy lz4 zstd; do
  seq 500 | produce $topic-$codec -p 0 -z $codec
  check codec-$codec "$(consume $topic-$codec -p 0 -e | md5sum)" "$(seq 500 | md5sum)"
done
printf 'x\ny\n' | produce $topic-i -p 0 -X enable.idempotence=true
check idempotent "$(consume $topic-i -p 0 -e -f '%s ')" 'x y '
printf '1\n2\n' | produce $topic-t -p 0 -X transactional.id=$topic
check txn "$(consume $topic-t -p 0 -e -X isolation.level=read_committed -f '%s ')" '1 2 '
for i in 1 2 3; do printf 'same:%s\n' $i | produce $topic-m -K: -X partitioner=murmur2_random; done
check partitioner "$(consume $topic-m -e -f '%p\n' | sort -u | wc -l)" 1
head -c 1500000 /dev/zero | tr '\0' x > big
$kcat -P -t $topic -p 0 -X message.max.bytes=3000000 big 2> refused
check too-large "$(grep -ci 'too large\|larger' refused)" 1

# --- groups --------------------------------------------------------------------------------------------------
$group -G $topic-g $topic -c 5 -f '%s,' > first 2> /dev/null
check group "$(tr , '\n' < first | grep -c .)" 4
printf 'new\n' | produce $topic -p 0
check group-resume "$($group -G $topic-g $topic -c 1 -f '%s' 2> /dev/null)" new
for assignor in range roundrobin cooperative-sticky; do
  shared=$topic-shared-$assignor
  for p in 0 1 2 3; do echo "first $p" | produce $shared -p $p; done
  member="$group -u -X partition.assignment.strategy=$assignor -G $shared $shared -f %s\\n"
  $member > one 2> one.err & one=$!
  for i in $(seq 100); do [ "$(grep -c first one)" = 4 ] && break; sleep 0.1; done
  $member > two 2> two.err & two=$!
  # each of two members reads two of the four partitions, from some round on
  for round in $(seq 30); do
    for p in 0 1 2 3; do echo "round-$round $p" | produce $shared -p $p; done
    sleep 0.3
    split="$(grep -c "round-$round " one) $(grep -c "round-$round " two)"
    [ "$split" = "2 2" ] && break
  done
  check group-of-two-$assignor "$split" "2 2"
  # the first leaves: the second takes over its partitions
  kill $one; wait $one 2> /dev/null
  for round in $(seq 31 60); do
    for p in 0 1 2 3; do echo "round-$round $p" | produce $shared -p $p; done
    sleep 0.3
    [ "$(grep -c "round-$round " two)" = 4 ] && break
  done
  check group-after-leave-$assignor "$(grep -c "round-$round " two)" 4
  kill $two; wait $two 2> /dev/null
done

# --- the broker stops and comes back -------------------------------------------------------------------------
for how in term kill; do
  printf 'before\n' | produce $topic-$how -p 0
  $group -G $topic-$how $topic-$how -c 1 > /dev/null 2>&1
  $BROKER_CTL $how || echo "FAIL restart-$how -- the broker did not come back"
  printf 'after\n' | produce $topic-$how -p 0
  check group-resume-after-$how "$($group -G $topic-$how $topic-$how -c 1 -f '%s' 2> /dev/null)" after
  check records-kept-after-$how "$(consume $topic-$how -p 0 -e -f '%o %s ')" '0 before 1 after '
done
