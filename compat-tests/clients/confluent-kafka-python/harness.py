"""Runs checks and prints a line for each; what the checks of this folder share."""

import functools
import os
import subprocess
import sys
import time
import traceback
import uuid

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP = sys.argv[1]
PATIENCE = 40
CHECKS = []


def check(function):
    """Registers a check; its name is the function's, with dashes."""
    CHECKS.append((function.__name__.replace("_", "-"), function))
    return function


def check_each(**cases):
    """Registers a check per case, named `function-case`, called with the case's value."""

    def register(function):
        name = function.__name__.replace("_", "-")
        for case, value in cases.items():
            CHECKS.append((f"{name}-{case.replace('_', '-')}", lambda value=value: function(value)))
        return function

    return register


def run():
    """Runs all; exits with 1 if any failed."""
    failed = 0
    for name, function in CHECKS:
        try:
            function()
            print(f"PASS {name}", flush=True)
        except Exception as error:
            failed += 1
            traceback.print_exc()
            where = traceback.extract_tb(error.__traceback__)[-1]
            why = " ".join(f"{type(error).__name__}: {error} (line {where.lineno})".split())
            print(f"FAIL {name} -- {why}", flush=True)
    sys.exit(1 if failed else 0)


def fresh(kind="topic"):
    return f"{kind}-{uuid.uuid4().hex[:10]}"


@functools.cache
def admin():
    """One for all checks: a future of a client that is gone fails."""
    return AdminClient({"bootstrap.servers": BOOTSTRAP})


def wait(future):
    """The result of one of admin's futures."""
    return future.result(PATIENCE)


def create(partitions=1, config=None, name=None):
    name = name or fresh()
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
    wait(admin().create_topics([topic])[name])
    until(lambda: len(admin().list_topics(name, timeout=PATIENCE).topics[name].partitions) == partitions)
    return name


def until(condition, patience=PATIENCE):
    """Waits for something that becomes true."""
    deadline = time.time() + patience
    while not condition():
        assert time.time() < deadline, "did not become true in time"
        time.sleep(0.1)


class Sender:
    """A producer that remembers what became of each record."""

    def __init__(self, **config):
        base = {"bootstrap.servers": BOOTSTRAP, "message.timeout.ms": PATIENCE * 1000}
        self.producer = Producer({**base, **config})
        self.delivered, self.errors = [], []

    def report(self, error, message):
        if error is None:
            self.delivered.append((message.partition(), message.offset()))
        else:
            self.errors.append(error)

    def send(self, topic, value=None, **more):
        self.producer.produce(topic, value=value, on_delivery=self.report, **more)

    def done(self):
        """Flushes; every record must have been taken."""
        assert self.producer.flush(PATIENCE) == 0, "not all was flushed"
        assert not self.errors, self.errors
        return self.delivered


def send(topic, values, config=None, **more):
    sender = Sender(**(config or {}))
    for value in values:
        sender.send(topic, value, **more)
    return sender.done()


def reader(group=None, **config):
    base = {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": group or fresh("group"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "enable.partition.eof": True,
    }
    return Consumer({**base, **config})


def read_all(topic, partitions=1, start=0, **config):
    """Every record from `start` to the end of each partition."""
    consumer = reader(**config)
    consumer.assign([TopicPartition(topic, partition, start) for partition in range(partitions)])
    open_ends, records = set(range(partitions)), []
    while open_ends:
        message = next_event(consumer)
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            open_ends.discard(message.partition())
        else:
            records.append(message)
    consumer.close()
    return records


def next_event(consumer):
    message = consumer.poll(PATIENCE)
    assert message is not None, "nothing came"
    return message


def take(consumer, count):
    """So many records, ends of partitions passed over."""
    records = []
    while len(records) < count:
        message = next_event(consumer)
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
        else:
            records.append(message)
    return records


def values(records):
    return [record.value().decode() if record.value() is not None else None for record in records]


def error_code(call):
    """The code of the KafkaException that a call must raise."""
    from confluent_kafka import KafkaException

    try:
        result = call()
    except KafkaException as error:
        return error.args[0].code()
    raise AssertionError(f"no error, but {result}")


def broker(order):
    """Stops and starts the broker: `term` or `kill`."""
    subprocess.run([*os.environ["BROKER_CTL"].split(), order], check=True)
