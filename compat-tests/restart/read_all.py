"""read_all.py HOST:PORT TOPIC OUT : reads every partition to its end; a line per record: partition, offset, value."""

import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition

bootstrap, topic, out_path = sys.argv[1:4]
consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    }
)
partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
open_ends = set(partitions)
with open(out_path, "w") as out:
    while open_ends:
        message = consumer.poll(30)
        if message is None:
            sys.exit("nothing came for 30 seconds")
        error = message.error()
        if error is None:
            out.write(f"{message.partition()} {message.offset()} {message.value().decode()}\n")
        elif error.code() == KafkaError._PARTITION_EOF:
            open_ends.discard(message.partition())
        else:
            sys.exit(str(error))
consumer.close()
