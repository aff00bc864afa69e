"""Groups and their offsets."""

import asyncio
import re

from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata
from kit import admin, checks, consumer, create, fresh, read, send, take, until

CHECKS, check = checks()
FAST = {"session_timeout_ms": 10000, "heartbeat_interval_ms": 300}


@check
async def commit_and_resume():
    topic, group = await create(), fresh("group")
    partition = TopicPartition(topic, 0)
    await send(topic, [b"%d" % number for number in range(10)])
    async with consumer(topic, group_id=group, enable_auto_commit=False) as client:
        await take(client, 10)
        await client.commit({partition: OffsetAndMetadata(4, "text")})
        assert await client.committed(partition) == 4
    async with admin() as client:
        assert (await client.list_consumer_group_offsets(group))[partition] == OffsetAndMetadata(4, "text")
    assert await read(topic, 6, group_id=group) == [b"4", b"5", b"6", b"7", b"8", b"9"]


@check
async def group_of_two():
    topic, group = await create(4), fresh("group")
    async with admin() as client:
        async with consumer(topic, group_id=group, **FAST) as one:
            async with consumer(topic, group_id=group, **FAST) as two:

                async def shared():
                    await asyncio.gather(one.getmany(timeout_ms=50), two.getmany(timeout_ms=50))
                    return len(one.assignment()) == len(two.assignment()) == 2

                async def stable():
                    return (await client.describe_consumer_groups([group]))[0].groups[0][2] == "Stable"

                await until("two each", shared)
                await until("stable", stable)
                assert (group, "consumer") in await client.list_consumer_groups()

            async def alone():
                await one.getmany(timeout_ms=50)
                return len(one.assignment()) == 4

            await until("four for the first", alone)


@check
async def static_member_returns():
    topic, group = await create(2), fresh("group")
    for _ in range(2):
        async with consumer(topic, group_id=group, group_instance_id="one", session_timeout_ms=10000) as client:
            await until("its two partitions", lambda: len(client.assignment()) == 2)


@check
async def commit_without_a_position():
    topic = await create()
    partition = TopicPartition(topic, 0)
    async with consumer(topic, group_id=fresh("group"), enable_auto_commit=False) as client:
        await until("its partition", lambda: client.assignment() == {partition})
        assert await client.committed(partition) is None
        await client.commit({partition: 0})
        assert await client.committed(partition) == 0


@check
async def pattern():
    topic = await create()
    await send(topic, [b"x"])
    async with consumer(group_id=fresh("group"), metadata_max_age_ms=1000) as client:
        client.subscribe(pattern=f"^{re.escape(topic)}.*")
        assert [record.value for record in await take(client, 1)] == [b"x"]
        # a topic that matches and comes later
        await send(f"{topic}-later", [b"y"])
        assert [record.value for record in await take(client, 1)] == [b"y"]
