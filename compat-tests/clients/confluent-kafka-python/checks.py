"""checks.py HOST:PORT : topics, records, groups and restarts, as programs use confluent-kafka-python."""

import time

from confluent_kafka import (
    ConsumerGroupState,
    KafkaError,
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_STORED,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from harness import (
    PATIENCE,
    Sender,
    admin,
    broker,
    check,
    check_each,
    create,
    error_code,
    fresh,
    read_all,
    reader,
    run,
    send,
    take,
    until,
    values,
    wait,
)


# --- topics ----------------------------------------------------------------------------------------------------
@check
def topic_created_and_listed():
    topic = create(partitions=3)
    listed = admin().list_topics(timeout=PATIENCE).topics
    assert sorted(listed[topic].partitions) == [0, 1, 2]


@check
def topic_created_by_producing():
    topic = fresh()
    send(topic, ["a"])
    assert len(admin().list_topics(topic, timeout=PATIENCE).topics[topic].partitions) == 4


@check
def topic_described():
    topic = create(partitions=2)
    described = wait(admin().describe_topics(TopicCollection([topic]))[topic])
    assert described.name == topic and not described.is_internal
    assert [(p.id, p.leader.id, [n.id for n in p.isr]) for p in described.partitions] == [(0, 1, [1]), (1, 1, [1])]


@check
def topic_deleted():
    topic = create()
    wait(admin().delete_topics([topic])[topic])
    until(lambda: topic not in admin().list_topics(timeout=PATIENCE).topics)


@check
def topic_errors():
    topic = create()
    again = lambda: wait(admin().create_topics([NewTopic(topic, 1, 1)])[topic])
    assert error_code(again) == KafkaError.TOPIC_ALREADY_EXISTS
    gone = fresh()
    assert error_code(lambda: wait(admin().delete_topics([gone])[gone])) == KafkaError.UNKNOWN_TOPIC_OR_PART
    many = lambda: wait(admin().create_topics([NewTopic(gone, 1, 5)])[gone])
    assert error_code(many) == KafkaError.INVALID_REPLICATION_FACTOR
    odd = lambda: wait(admin().create_topics([NewTopic(gone, 1, 1, config={"no.such": "1"})])[gone])
    assert error_code(odd) == KafkaError.INVALID_CONFIG


@check
def topic_only_validated():
    topic = fresh()
    wait(admin().create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic])
    assert topic not in admin().list_topics(timeout=PATIENCE).topics


@check
def partitions_added():
    topic = create()
    wait(admin().create_partitions([NewPartitions(topic, 4)])[topic])
    until(lambda: len(admin().list_topics(topic, timeout=PATIENCE).topics[topic].partitions) == 4)


@check
def configs_changed():
    topic = create(config={"retention.ms": "1000000"})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    read = lambda: wait(admin().describe_configs([resource])[resource])
    until(lambda: read()["retention.ms"].value == "1000000")
    assert read()["cleanup.policy"].value == "delete"
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    wait(admin().incremental_alter_configs([change])[change])
    until(lambda: read()["cleanup.policy"].value == "compact")
    assert read()["retention.ms"].value == "1000000"


@check
def cluster_described():
    cluster = wait(admin().describe_cluster())
    assert [node.id for node in cluster.nodes] == [1] and cluster.controller.id == 1 and cluster.cluster_id


@check
def records_deleted():
    topic = create()
    send(topic, ["a", "b", "c"])
    done = admin().delete_records([TopicPartition(topic, 0, 2)])
    assert wait(list(done.values())[0]).low_watermark == 2
    assert values(read_all(topic)) == ["c"]


@check
def offsets_listed():
    topic = create()
    send(topic, ["a", "b", "c"], timestamp=1_600_000_000_000)
    partition = TopicPartition(topic, 0)
    asked = lambda spec: wait(list(admin().list_offsets({partition: spec}).values())[0]).offset
    assert asked(OffsetSpec.earliest()) == 0 and asked(OffsetSpec.latest()) == 3
    assert asked(OffsetSpec.max_timestamp()) == 0
    assert asked(OffsetSpec.for_timestamp(1_500_000_000_000)) == 0


# --- records ---------------------------------------------------------------------------------------------------
@check_each(none="none", gzip="gzip", snappy="snappy", lz4="lz4", zstd="zstd")
def codec(name):
    topic = create()
    sent = [f"{name} {number} " + "x" * 50 for number in range(500)]
    send(topic, sent, {"compression.type": name, "linger.ms": 20})
    assert values(read_all(topic)) == sent


@check
def keys_choose_partitions():
    topic = create(partitions=4)
    sender = Sender()
    for number in range(200):
        sender.send(topic, str(number), key=f"key-{number % 20}")
    sender.done()
    places = {}
    for record in read_all(topic, partitions=4):
        places.setdefault(record.key(), set()).add(record.partition())
    assert len(places) == 20 and all(len(partitions) == 1 for partitions in places.values())


@check
def keyless_records_arrive():
    topic = create(partitions=4)
    send(topic, [str(number) for number in range(100)])
    assert sorted(values(read_all(topic, partitions=4)), key=int) == [str(number) for number in range(100)]


@check
def nulls_and_empties():
    topic = create()
    pairs = [(None, None), (b"", b""), (b"k", None), (None, b"v"), (b"", b"v"), (b"k", b"")]
    sender = Sender()
    for key, value in pairs:
        sender.send(topic, value, key=key)
    sender.done()
    assert [(record.key(), record.value()) for record in read_all(topic)] == pairs


@check
def headers_and_timestamps():
    topic = create()
    headers = [("a", b"1"), ("a", b"2"), ("none", None), ("empty", b"")]
    send(topic, ["v"], headers=headers, timestamp=1_600_000_000_123)
    record = read_all(topic)[0]
    assert record.headers() == headers and record.timestamp()[1] == 1_600_000_000_123


@check_each(none=0, leader=1, all=-1)
def acks(level):
    topic = create()
    send(topic, ["a", "b"], {"acks": level})
    until(lambda: values(read_all(topic)) == ["a", "b"])


@check
def idempotent_producer():
    topic = create()
    delivered = send(topic, [str(n) for n in range(2000)], {"enable.idempotence": True, "batch.num.messages": 50})
    assert [offset for _, offset in delivered] == list(range(2000))
    assert values(read_all(topic)) == [str(n) for n in range(2000)]


@check
def too_large_is_refused():
    topic = create(config={"max.message.bytes": "2000"})
    sender = Sender()
    sender.send(topic, "x" * 5000)
    sender.producer.flush(PATIENCE)
    assert [error.code() for error in sender.errors] == [KafkaError.MSG_SIZE_TOO_LARGE]


@check
def large_record():
    topic = create()
    send(topic, ["x" * 900_000])
    assert len(read_all(topic)[0].value()) == 900_000


# --- reading ---------------------------------------------------------------------------------------------------
@check
def from_an_offset():
    topic = create()
    send(topic, ["a", "b", "c", "d"])
    assert values(read_all(topic, start=2)) == ["c", "d"]


@check
def from_a_time():
    topic = create()
    for number in range(5):
        send(topic, [str(number)], timestamp=1_600_000_000_000 + number * 1000)
    consumer = reader()
    found = consumer.offsets_for_times([TopicPartition(topic, 0, 1_600_000_002_500)], timeout=PATIENCE)
    assert found[0].offset == 3
    late = consumer.offsets_for_times([TopicPartition(topic, 0, 1_900_000_000_000)], timeout=PATIENCE)
    assert late[0].offset == OFFSET_END
    consumer.close()


@check
def watermarks_and_seek():
    topic = create()
    send(topic, ["a", "b", "c"])
    consumer = reader()
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE) == (0, 3)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    assert values(take(consumer, 3)) == ["a", "b", "c"]
    consumer.seek(TopicPartition(topic, 0, 1))
    assert values(take(consumer, 2)) == ["b", "c"]
    consumer.close()


@check
def out_of_range_resets():
    topic = create()
    send(topic, ["a", "b"])
    assert values(read_all(topic, start=50)) == ["a", "b"]
    consumer = reader(**{"auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, 0, 50)])
    message = consumer.poll(PATIENCE)
    assert message.error().code() == KafkaError._AUTO_OFFSET_RESET, message.error()
    consumer.close()


@check
def a_waiting_reader_wakes():
    topic = create()
    consumer = reader(**{"fetch.wait.max.ms": 20000})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert take_nothing(consumer, 1)
    for number in range(4):
        started = time.time()
        send(topic, [str(number)])
        assert values(take(consumer, 1)) == [str(number)]
        assert time.time() - started < 10, "the fetch slept on"
    consumer.close()


def take_nothing(consumer, seconds):
    """True if no record comes for so long."""
    deadline = time.time() + seconds
    while time.time() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            return False
    return True


# --- groups ----------------------------------------------------------------------------------------------------
class Member:
    """A member of a group that counts what it is given."""

    def __init__(self, topic, group, strategy, **config):
        self.assigned, self.seen = set(), []
        self.consumer = reader(group, **{"partition.assignment.strategy": strategy, "heartbeat.interval.ms": 300, **config})
        self.cooperative = "cooperative" in strategy
        self.consumer.subscribe([topic], on_assign=self.on_assign, on_revoke=self.on_revoke)

    def on_assign(self, consumer, partitions):
        self.assigned |= {p.partition for p in partitions}

    def on_revoke(self, consumer, partitions):
        self.assigned -= {p.partition for p in partitions}

    def turn(self):
        message = self.consumer.poll(0.05)
        if message is not None and message.error() is None:
            self.seen.append(message.value().decode())


def settle(members, partitions, each):
    """Polls until the members share all partitions, so many each."""

    def shared():
        for member in members:
            member.turn()
        taken = [partition for member in members for partition in member.assigned]
        return sorted(taken) == list(range(partitions)) and sorted(len(m.assigned) for m in members) == each

    until(shared)


@check_each(range="range", roundrobin="roundrobin", cooperative_sticky="cooperative-sticky")
def group(strategy):
    topic, name = create(partitions=6), fresh("group")
    members = [Member(topic, name, strategy)]
    settle(members, 6, [6])
    members.append(Member(topic, name, strategy))
    settle(members, 6, [3, 3])
    members.append(Member(topic, name, strategy))
    settle(members, 6, [2, 2, 2])
    sent = [str(number) for number in range(60)]
    for number, value in enumerate(sent):
        send(topic, [value], partition=number % 6)
    until(lambda: [m.turn() for m in members] and sum(len(m.seen) for m in members) >= 60)
    assert sorted((v for m in members for v in m.seen), key=int) == sent
    members.pop().consumer.close()
    settle(members, 6, [3, 3])
    for member in members:
        member.consumer.close()


@check
def static_member_returns():
    topic, name = create(partitions=2), fresh("group")
    first = Member(topic, name, "range", **{"group.instance.id": "one", "session.timeout.ms": 20000})
    second = Member(topic, name, "range", **{"group.instance.id": "two", "session.timeout.ms": 20000})
    settle([first, second], 2, [1, 1])
    had = set(second.assigned)
    second.consumer.close()
    again = Member(topic, name, "range", **{"group.instance.id": "two", "session.timeout.ms": 20000})
    settle([first, again], 2, [1, 1])
    assert again.assigned == had
    for member in (first, again):
        member.consumer.close()


@check
def commits_are_kept():
    topic, name = create(), fresh("group")
    send(topic, ["a", "b", "c", "d"])
    consumer = reader(name)
    consumer.subscribe([topic])
    records = take(consumer, 2)
    consumer.commit(message=records[1], asynchronous=False)
    consumer.close()
    consumer = reader(name)
    assert consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)[0].offset == 2
    consumer.subscribe([topic])
    assert values(take(consumer, 2)) == ["c", "d"]
    consumer.close()
    consumer = reader(name)
    consumer.assign([TopicPartition(topic, 0, OFFSET_STORED)])
    assert values(take(consumer, 2)) == ["c", "d"]
    consumer.close()


@check
def groups_administered():
    topic, name = create(), fresh("group")
    send(topic, ["a", "b"])
    consumer = reader(name)
    consumer.subscribe([topic])
    consumer.commit(message=take(consumer, 1)[0], asynchronous=False)
    described = wait(admin().describe_consumer_groups([name])[name])
    assert described.state == ConsumerGroupState.STABLE and len(described.members) == 1
    listed = wait(admin().list_consumer_groups())
    assert name in [group.group_id for group in listed.valid]
    assert error_code(lambda: wait(admin().delete_consumer_groups([name])[name])) == KafkaError.NON_EMPTY_GROUP
    consumer.close()
    offsets = wait(admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name])
    assert [(p.topic, p.offset) for p in offsets.topic_partitions] == [(topic, 1)]
    moved = ConsumerGroupTopicPartitions(name, [TopicPartition(topic, 0, 0)])
    wait(admin().alter_consumer_group_offsets([moved])[name])
    offsets = wait(admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name])
    assert [p.offset for p in offsets.topic_partitions] == [0]
    wait(admin().delete_consumer_groups([name])[name])
    assert error_code(lambda: wait(admin().delete_consumer_groups([name])[name])) == KafkaError.GROUP_ID_NOT_FOUND


# --- transactions ----------------------------------------------------------------------------------------------
@check
def transaction():
    topic = create()
    sender = Sender(**{"transactional.id": fresh("txn")})
    sender.producer.init_transactions(PATIENCE)
    for outcome in ("commit_transaction", "abort_transaction", "commit_transaction"):
        sender.producer.begin_transaction()
        sender.send(topic, outcome)
        sender.producer.flush(PATIENCE)
        getattr(sender.producer, outcome)(PATIENCE)
    committed = read_all(topic, **{"isolation.level": "read_committed"})
    assert values(committed) == ["commit_transaction", "commit_transaction"]


# --- the broker stops and comes back ---------------------------------------------------------------------------
@check_each(term="term", kill="kill")
def resume_after(how):
    topic, name = create(), fresh("group")
    send(topic, ["a", "b", "c"])
    consumer = reader(name)
    consumer.subscribe([topic])
    consumer.commit(message=take(consumer, 2)[1], asynchronous=False)
    consumer.close()
    broker(how)
    assert values(read_all(topic)) == ["a", "b", "c"]
    consumer = reader(name)
    consumer.subscribe([topic])
    assert values(take(consumer, 1)) == ["c"]
    consumer.close()


@check_each(term="term", kill="kill")
def clients_live_through(how):
    topic, name = create(partitions=2), fresh("group")
    sender = Sender(**{"enable.idempotence": True})
    member = Member(topic, name, "range")
    settle([member], 2, [2])
    for number in range(20):
        sender.send(topic, str(number), partition=number % 2)
    sender.done()
    broker(how)
    for number in range(20, 40):
        sender.send(topic, str(number), partition=number % 2)
    sender.done()
    until(lambda: member.turn() or len(set(member.seen)) == 40)
    assert sorted(values(read_all(topic, partitions=2)), key=int) == [str(number) for number in range(40)]
    member.consumer.close()


if __name__ == "__main__":
    run()
