"""checks.py HOST:PORT : what kafka-python's own tests leave out: codecs, assignors, offsets and times, restarts."""

import os
import subprocess
import sys
import threading
import time
import traceback
import uuid

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

BOOTSTRAP = sys.argv[1]
PATIENCE = 60
failed = 0


def run(name, function, *arguments):
    global failed
    try:
        function(*arguments)
        print(f"PASS checks {name}", flush=True)
    except Exception as error:
        failed += 1
        traceback.print_exc()
        print(f"FAIL checks {name} -- {type(error).__name__}: {' '.join(str(error).split())}", flush=True)


def fresh(kind="topic"):
    return f"{kind}-{uuid.uuid4().hex[:10]}"


def create(partitions=1):
    name = fresh()
    admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    admin.create_topics([NewTopic(name=name, num_partitions=partitions, replication_factor=1)])
    admin.close()
    return name


def send(topic, values, **config):
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, **config)
    places = [producer.send(topic, value=value, partition=0).get(PATIENCE) for value in values]
    producer.close()
    return [place.offset for place in places]


def reader(group=None, **config):
    base = {"bootstrap_servers": BOOTSTRAP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return KafkaConsumer(group_id=group, **{**base, **config})


def take(consumer, count):
    records, deadline = [], time.time() + PATIENCE
    while len(records) < count:
        assert time.time() < deadline, f"only {len(records)} of {count}"
        for batch in consumer.poll(timeout_ms=5000).values():
            records.extend(batch)
    return records


def read(topic, count, start=0):
    consumer = reader()
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, start)
    values = [record.value for record in take(consumer, count)]
    consumer.close()
    return values


def codec(name):
    topic, sent = create(), [b"%d " % number * 20 for number in range(100)]
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, compression_type=name, linger_ms=50)
    for value in sent:
        producer.send(topic, value=value, partition=0)
    producer.flush(PATIENCE)
    producer.close()
    assert read(topic, 100) == sent


def nulls_headers_times():
    topic = create()
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP)
    pairs = [(None, b"v"), (b"k", None), (b"", b""), (b"k", b"v")]
    for key, value in pairs:
        producer.send(topic, key=key, value=value, partition=0, headers=[("h", b"x")], timestamp_ms=1600000000000)
    producer.flush(PATIENCE)
    producer.close()
    consumer = reader()
    consumer.assign([TopicPartition(topic, 0)])
    records = take(consumer, 4)
    consumer.close()
    assert [(record.key, record.value) for record in records] == pairs
    assert all(list(record.headers) == [("h", b"x")] and record.timestamp == 1600000000000 for record in records)


def offsets_and_times():
    topic = create()
    partition = TopicPartition(topic, 0)
    assert send(topic, [b"a", b"b", b"c"]) == [0, 1, 2]
    consumer = reader()
    assert consumer.beginning_offsets([partition])[partition] == 0
    assert consumer.end_offsets([partition])[partition] == 3
    assert consumer.offsets_for_times({partition: 1600000000000})[partition].offset == 0
    assert consumer.offsets_for_times({partition: 4000000000000})[partition] is None
    consumer.close()
    assert read(topic, 1, start=2) == [b"c"]


def idempotent():
    topic = create()
    assert send(topic, [b"%d" % number for number in range(50)], enable_idempotence=True) == list(range(50))


class Member:
    """Polls in its own thread and without a pause: a join that ends between two polls is never taken (FINDINGS.md)."""

    def __init__(self, consumer):
        self.consumer, self.wanted = consumer, True
        self.thread = threading.Thread(target=self.poll)
        self.thread.start()

    def poll(self):
        while self.wanted:
            self.consumer.poll(timeout_ms=1000)

    def close(self):
        self.wanted = False
        self.thread.join()
        self.consumer.close()


def group(assignor):
    topic, name = create(4), fresh("group")
    config = {"partition_assignment_strategy": [assignor], "session_timeout_ms": 6000, "heartbeat_interval_ms": 300}
    members = []

    def settle(each):
        deadline = time.time() + PATIENCE
        while sorted(len(member.consumer.assignment()) for member in members) != each:
            assert time.time() < deadline, [member.consumer.assignment() for member in members]
            time.sleep(0.05)

    try:
        for each in ([4], [2, 2]):
            consumer = reader(name, **config)
            # So that it joins once, not again when the topic's partitions become known.
            assert consumer.partitions_for_topic(topic)
            consumer.subscribe([topic])
            members.append(Member(consumer))
            settle(each)
        members.pop().close()
        settle([4])
    finally:
        for member in members:
            member.close()


def resume(how):
    topic, name = create(), fresh("group")
    send(topic, [b"a", b"b", b"c"])
    consumer = reader(name, max_poll_records=2)
    consumer.subscribe([topic])
    assert [record.value for record in take(consumer, 2)] == [b"a", b"b"]
    consumer.commit()
    consumer.close()
    subprocess.run([*os.environ["BROKER_CTL"].split(), how], check=True)
    assert read(topic, 3) == [b"a", b"b", b"c"]
    consumer = reader(name)
    consumer.subscribe([topic])
    assert take(consumer, 1)[0].value == b"c"
    consumer.close()


for compression in (None, "gzip", "snappy", "lz4", "zstd"):
    run(f"codec-{compression}", codec, compression)
run("nulls-headers-times", nulls_headers_times)
run("offsets-and-times", offsets_and_times)
run("idempotent", idempotent)
for strategy in (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor):
    run(f"group-{strategy.__name__}", group, strategy)
for order in ("term", "kill"):
    run(f"resume-after-{order}", resume, order)
sys.exit(1 if failed else 0)
