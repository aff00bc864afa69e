"""Producing and reading."""

import asyncio
import time

from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError
from kit import checks, consumer, create, fresh, producer, read, send, take

CHECKS, check = checks()
TEN = [b"%d" % number for number in range(10)]


@check
async def offsets_of_what_was_sent():
    sent = await send(await create(), TEN)
    assert [place.offset for place in sent] == list(range(10))
    assert sent[0].timestamp_type == 0 and sent[0].log_start_offset == 0, sent[0]


@check
async def keys_headers_nulls_times():
    topic = await create()
    headers = (("h", b"x"), ("h", b""))
    async with producer() as client:
        await client.send_and_wait(topic, None, key=b"k", headers=list(headers), timestamp_ms=1600000000000)
        await client.send_and_wait(topic, b"", key=b"")
    async with consumer(topic) as client:
        one, two = await take(client, 2)
    assert (one.key, one.value, one.headers, one.timestamp) == (b"k", None, headers, 1600000000000)
    assert (two.key, two.value) == (b"", b"")


def codec(name):
    async def function():
        topic, values = await create(), [b"%d " % number * 20 for number in range(2000)]
        await send(topic, values, compression_type=name)
        assert await read(topic, 2000) == values

    function.__name__ = f"codec_{name}"
    check(function)


for each in ("gzip", "snappy", "lz4", "zstd"):
    codec(each)


@check
async def acks():
    topic = await create()
    for number in ("all", 1, 0):
        await send(topic, [b"%a" % number], acks=number)
    assert await read(topic, 3) == [b"'all'", b"1", b"0"]


@check
async def log_append_time():
    topic = await create(**{"message.timestamp.type": "LogAppendTime"})
    before = time.time() * 1000 - 1
    sent = (await send(topic, [b"x"]))[0]
    assert sent.timestamp_type == 1 and sent.timestamp >= before, sent
    async with consumer(topic) as client:
        record = (await take(client, 1))[0]
    assert (record.timestamp_type, record.timestamp) == (1, sent.timestamp)


@check
async def idempotent():
    topic = await create(2)
    await send(topic, TEN * 20, partition=1, enable_idempotence=True)
    assert await read(topic, 200) == TEN * 20


@check
async def too_large():
    topic = await create()
    try:
        await send(topic, [b"x" * 1500000], max_request_size=2000000)
    except MessageSizeTooLargeError:
        return
    raise AssertionError("it was taken")


@check
async def topic_by_producing():
    topic = fresh()
    await send(topic, TEN)
    assert await read(topic, 10) == TEN


@check
async def seeks_and_ends():
    topic = await create()
    await send(topic, TEN)
    partition = TopicPartition(topic, 0)
    async with consumer() as client:
        client.assign([partition])
        client.seek(partition, 7)
        assert (await client.getone()).value == b"7" and await client.position(partition) == 8
        await client.seek_to_beginning(partition)
        assert (await client.getone()).offset == 0
        await client.seek_to_end(partition)
        assert await client.position(partition) == 10
        assert await client.beginning_offsets([partition]) == {partition: 0}
        assert await client.end_offsets([partition]) == {partition: 10}


@check
async def offsets_for_times():
    topic = await create()
    partition = TopicPartition(topic, 0)
    async with producer() as client:
        for at in (1000, 2000, 3000):
            await client.send_and_wait(topic, b"x", timestamp_ms=1600000000000 + at)
    async with consumer() as client:
        found = (await client.offsets_for_times({partition: 1600000001500}))[partition]
        assert (found.offset, found.timestamp) == (1, 1600000002000)
        assert (await client.offsets_for_times({partition: 1700000000000}))[partition] is None


@check
async def out_of_range():
    topic = await create()
    await send(topic, TEN)
    partition = TopicPartition(topic, 0)
    async with consumer(auto_offset_reset="none") as client:
        client.assign([partition])
        client.seek(partition, 1000)
        try:
            await asyncio.wait_for(client.getone(), 15)
        except OffsetOutOfRangeError:
            return
    raise AssertionError("a record came from beyond the end")


@check
async def pause_and_resume():
    topic = await create()
    await send(topic, TEN)
    partition = TopicPartition(topic, 0)
    async with consumer() as client:
        client.assign([partition])
        client.seek(partition, 0)
        client.pause(partition)
        assert not await client.getmany(timeout_ms=1000)
        client.resume(partition)
        assert (await asyncio.wait_for(client.getone(), 10)).offset == 0


@check
async def fetch_smaller_than_a_record():
    topic, values = await create(), [b"x" * 200000] * 3
    await send(topic, values)
    assert await read(topic, 3, max_partition_fetch_bytes=1000) == values


@check
async def a_waiting_reader_wakes():
    topic = await create()
    partition = TopicPartition(topic, 0)
    async with consumer(fetch_max_wait_ms=20000, request_timeout_ms=40000) as client:
        client.assign([partition])
        client.seek(partition, 0)
        assert not await client.getmany(timeout_ms=1000)
        await send(topic, [b"x"])
        sent = time.time()
        assert (await client.getone()).value == b"x"
        assert time.time() - sent < 10, "the fetch slept on"
