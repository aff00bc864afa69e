"""Topics, configs, the cluster, by the admin client."""

from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from kit import admin, checks, create, fresh, partitions, read, send, until

CHECKS, check = checks()


@check
async def cluster_described():
    async with admin() as client:
        cluster = await client.describe_cluster()
        assert len(cluster["brokers"]) == 1 and cluster["cluster_id"], cluster


@check
async def topic_life():
    topic = await create(3)
    async with admin() as client:
        assert topic in await client.list_topics()
        await client.create_partitions({topic: NewPartitions(5)})

        async def grown():
            return await partitions(client, topic) == 5

        async def gone():
            return topic not in await client.list_topics()

        await until("5 partitions", grown)
        await client.delete_topics([topic])
        await until("gone", gone)


@check
async def topic_errors():
    topic = await create()
    async with admin() as client:
        asked = {
            NewTopic(topic, 1, 1): 36,  # TOPIC_ALREADY_EXISTS
            NewTopic("a name with spaces", 1, 1): 17,  # INVALID_TOPIC_EXCEPTION
            NewTopic(fresh(), 0, 1): 37,  # INVALID_PARTITIONS
            NewTopic(fresh(), 1, 3): 38,  # INVALID_REPLICATION_FACTOR
        }
        for new, code in asked.items():
            answer = await client.create_topics([new])
            assert answer.topic_errors[0][1] == code, answer


@check
async def topic_configs():
    topic = await create(**{"retention.ms": "12345678"})
    name = ConfigResource(ConfigResourceType.TOPIC, topic)
    async with admin() as client:

        async def retention():
            entries = (await client.describe_configs([name]))[0].resources[0][4]
            return {entry[0]: entry[1] for entry in entries}["retention.ms"]

        assert await retention() == "12345678"
        await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "87654321"})])

        async def altered():
            return await retention() == "87654321"

        await until("the new value", altered)


@check
async def records_deleted():
    topic = await create()
    await send(topic, [b"%d" % number for number in range(10)])
    async with admin() as client:
        await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=6)})
    assert await read(topic, 4) == [b"6", b"7", b"8", b"9"]
