"""Transactions."""

from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced
from aiokafka.structs import OffsetAndMetadata
from kit import admin, checks, create, fresh, producer, read, send, until

CHECKS, check = checks()


def transactional(name=None):
    return producer(transactional_id=name or fresh("txn"))


@check
async def transaction_commit_and_abort():
    topic = await create()
    async with transactional() as client:
        for value in (b"abort", b"commit") * 2:
            await client.begin_transaction()
            await client.send_and_wait(topic, value)
            await (client.commit_transaction() if value == b"commit" else client.abort_transaction())
    assert await read(topic, 3, 2, isolation_level="read_committed") == [b"commit"] * 2
    assert len(await read(topic, 4)) == 4


@check
async def transaction_holds_back():
    topic = await create()
    async with transactional() as client:
        await client.begin_transaction()
        await client.send_and_wait(topic, b"inside")
        await send(topic, [b"outside"])
        assert await read(topic, 1, 2, isolation_level="read_committed") == []
        await client.commit_transaction()
    assert await read(topic, 2, isolation_level="read_committed") == [b"inside", b"outside"]


@check
async def transaction_offsets():
    topic, group = await create(), fresh("group")
    partition = TopicPartition(topic, 0)
    async with transactional() as client, admin() as reader:

        async def committed():
            return (await reader.list_consumer_group_offsets(group)).get(partition) == OffsetAndMetadata(3, "")

        for offset, commits in ((3, True), (7, False)):
            await client.begin_transaction()
            await client.send_offsets_to_transaction({partition: OffsetAndMetadata(offset, "")}, group)
            await (client.commit_transaction() if commits else client.abort_transaction())
            await until("the offset of the first", committed)


@check
async def transaction_fencing():
    topic, name = await create(), fresh("txn")
    async with transactional(name) as old:
        await old.begin_transaction()
        await old.send_and_wait(topic, b"old")
        async with transactional(name) as young:
            try:
                await old.send_and_wait(topic, b"late")
                await old.commit_transaction()
            except ProducerFenced:
                pass
            else:
                raise AssertionError("it was not fenced")
            await young.begin_transaction()
            await young.send_and_wait(topic, b"young")
            await young.commit_transaction()
    assert await read(topic, 2, 2, isolation_level="read_committed") == [b"young"]
