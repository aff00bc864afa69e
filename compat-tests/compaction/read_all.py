"""read_all.py HOST:PORT TOPIC : reads partition 0 to its end; a line per record: offset, timestamp, key, hash of the value."""

import hashlib
import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition

bootstrap, topic = sys.argv[1:3]
consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "isolation.level": "read_uncommitted",
    }
)
consumer.assign([TopicPartition(topic, 0, 0)])
while True:
    message = consumer.poll(30)
    if message is None:
        sys.exit("nothing came for 30 seconds")
    error = message.error()
    if error is None:
        value = message.value()
        digest = "-" if value is None else hashlib.sha256(value).hexdigest()
        print(message.offset(), message.timestamp()[1], message.key().decode(), digest)
    elif error.code() == KafkaError._PARTITION_EOF:
        break
    else:
        sys.exit(str(error))
consumer.close()
