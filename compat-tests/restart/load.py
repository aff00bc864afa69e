"""load.py HOST:PORT TOPIC ACKED PER_SECOND : an idempotent producer that writes until SIGTERM; 0 is as fast as it can.

Each record's value is a number, counted up per partition. What was acknowledged goes to the file ACKED, a
line per record: partition, offset, number. Ends with 0 once all is delivered, with 1 if a record was given up.
"""

import signal
import sys
import time

from confluent_kafka import Producer

PARTITIONS = 4

bootstrap, topic, acked_path = sys.argv[1:4]
per_second = int(sys.argv[4])
acked = open(acked_path, "w", buffering=1)
failures = []
stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))


def delivered(error, message):
    if error is not None:
        failures.append(str(error))
        print(f"not delivered: {error}", file=sys.stderr)
    else:
        acked.write(f"{message.partition()} {message.offset()} {message.value().decode()}\n")


producer = Producer(
    {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "message.timeout.ms": 180000,
        "linger.ms": 2,
        "reconnect.backoff.max.ms": 200,
        "socket.timeout.ms": 10000,
    }
)
number = 0
while not stopping and not failures:
    for partition in range(PARTITIONS):
        try:
            producer.produce(topic, value=str(number), partition=partition, on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)
            continue
    number += 1
    producer.poll(0)
    if per_second:
        time.sleep(PARTITIONS / per_second)
left = producer.flush(180)
acked.close()
sys.exit(1 if left or failures else 0)
