"""group.py HOST:PORT TOPIC GROUP COUNT : reads COUNT records as a member of a group, commits, prints the values."""

import sys
import time

from confluent_kafka import Consumer

bootstrap, topic, group, count = sys.argv[1:5]
consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
    }
)
consumer.subscribe([topic])
values = []
deadline = time.time() + 60
while len(values) < int(count):
    message = consumer.poll(1)
    if time.time() > deadline:
        sys.exit(f"only {values} came")
    if message is None or message.error():
        continue
    values.append(message.value().decode())
    consumer.commit(message=message, asynchronous=False)
print(" ".join(values))
consumer.close()
