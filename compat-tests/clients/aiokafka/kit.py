"""What the checks share: a line per check, clients, topics, waiting."""

import asyncio
import contextlib
import os
import sys
import time
import traceback
import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

BOOTSTRAP = sys.argv[1]
PATIENCE = 40


def checks():
    """A list of checks and the decorator that puts one in, named as the function is, with dashes."""
    registered = []

    def check(function):
        registered.append((function.__name__.replace("_", "-"), function))
        return function

    return registered, check


def run(registered):
    """Runs all; exits with 1 if any failed."""
    failed = asyncio.run(run_each(registered))
    sys.stdout.flush()
    # clients that a failed check left behind are not waited for
    os._exit(1 if failed else 0)


async def run_each(registered):
    failed = 0
    for name, function in registered:
        try:
            await asyncio.wait_for(function(), 2 * PATIENCE)
            print(f"PASS {name}", flush=True)
        except Exception as error:
            failed += 1
            traceback.print_exc()
            print(f"FAIL {name} -- {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
    return failed


def fresh(kind="topic"):
    return f"{kind}-{uuid.uuid4().hex[:10]}"


@contextlib.asynccontextmanager
async def started(client):
    # without a coordinator it would go on asking
    await asyncio.wait_for(client.start(), PATIENCE / 2)
    try:
        yield client
    finally:
        await client.stop()


def producer(**config):
    return started(AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, **config))


def consumer(*topics, **config):
    config.setdefault("auto_offset_reset", "earliest")
    return started(AIOKafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, **config))


@contextlib.asynccontextmanager
async def admin():
    client = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def until(what, condition):
    """Waits until the condition, which may be a coroutine function, holds."""
    deadline = time.time() + PATIENCE
    while True:
        got = condition()
        if await got if asyncio.iscoroutine(got) else got:
            return
        assert time.time() < deadline, f"not in time: {what}"
        await asyncio.sleep(0.05)


async def partitions(client, topic):
    """How many of the topic's partitions have a leader."""
    return sum(partition["leader"] >= 0 for partition in (await client.describe_topics([topic]))[0]["partitions"])


async def create(count=1, **configs):
    topic = fresh()
    async with admin() as client:
        answer = await client.create_topics([NewTopic(topic, count, 1, topic_configs=configs)])
        assert answer.topic_errors[0][1] == 0, answer

        async def there():
            return await partitions(client, topic) == count

        await until(f"topic {topic}", there)
    return topic


async def send(topic, values, partition=0, **config):
    """Sends the values; what the broker said of each."""
    async with producer(**config) as client:
        return [await future for future in [await client.send(topic, value, partition=partition) for value in values]]


async def take(client, count, patience=PATIENCE):
    """Reads so many records, or what comes in that time."""
    records, deadline = [], time.time() + patience
    while len(records) < count and time.time() < deadline:
        for batch in (await client.getmany(timeout_ms=200)).values():
            records.extend(batch)
    return records


async def read(topic, count, patience=PATIENCE, **config):
    async with consumer(topic, **config) as client:
        return [record.value for record in await take(client, count, patience)]


async def broker(order):
    """Stops the broker with SIGTERM (`term`) or kill -9 (`kill`) and starts it again."""
    process = await asyncio.create_subprocess_exec(*os.environ["BROKER_CTL"].split(), order)
    assert await process.wait() == 0
