"""Group commit: acknowledged requests per second with `flush.messages=1`, of one producer and of many on the
same disk. Each producer has one request of one record in flight (acks=all), all to one partition.
May not live here: the producers (`benches/producers.rs`)."""

import os
import re
import subprocess

import loads

MANY = 64
SECONDS = 5
# Named by the frames that the producers send.
TOPIC = "measured"


def run(broker, scale, number):
    """The null broker knows no flush."""
    if broker.name == "null":
        return
    broker.create_topic(TOPIC, 1, flush_messages="1")
    rates = {}
    for producers in (1, MANY):
        meter = loads.Meter(broker)
        rates[producers] = requests_per_s(broker, producers, max(0.5, SECONDS * scale))
        yield loads.Figure(f"flush.messages=1, producers: {producers}", "requests/s", rates[producers],
                           others=meter.others())
    yield loads.Figure(f"flush.messages=1, producers: {MANY} ÷ 1", "ratio", rates[MANY] / rates[1],
                       others=meter.others())
    broker.delete_topic(TOPIC)


def requests_per_s(broker, producers, seconds):
    command = [os.environ["PRODUCERS"], str(broker.port), str(producers), str(int(seconds * 1000))]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
    return float(re.search(r"([\d.]+) requests/s", said)[1])
