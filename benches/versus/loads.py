"""Loads: one client, `rdkafka_performance`, the same options for every broker.
Lives here: what is sent and read, what it cost the broker. May not live here: how brokers start."""

import os
import re
import resource
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import brokers

# The Java producer's defaults where librdkafka's differ (1 MB batches, any number in flight).
PRODUCER = {"batch.size": 16384, "linger.ms": 5, "max.in.flight.requests.per.connection": 5}
ONE_RECORD = {"batch.num.messages": 1, "linger.ms": 0}
LARGE = {"batch.size": 131_072}
# Each record goes to a partition of its own (the client's default fills one for 10 ms, then another); the linger is
# so long that batches are full all the same.
SPREAD = {"sticky.partitioning.linger.ms": 0, "linger.ms": 200}
# A consumer takes less processor time than a tick can show, so the same bytes are read this often.
READINGS = 4


@dataclass(frozen=True)
class Load:
    """One row: `records` of `size` bytes to or from `partitions`."""

    name: str
    size: int
    records: int
    partitions: int = 1
    consume: bool = False
    per_request: bool = False
    codec: str = "none"
    counted: bool = False
    properties: dict = field(default_factory=dict)

    @property
    def unit(self):
        return "µs CPU/request" if self.per_request else "CPU-s/GB"


LOADS = {
    "produce-100": Load("produce 100 B, 1 partition", 100, 5_000_000, counted=True),
    "produce-100x12": Load("produce 100 B, 12 partitions", 100, 5_000_000, partitions=12),
    "produce-100x256": Load("produce 100 B, 256 partitions", 100, 5_000_000, partitions=256, properties=SPREAD),
    "produce-1k": Load("produce 1 KB, 1 partition", 1000, 800_000),
    "produce-1kx12": Load("produce 1 KB, 12 partitions", 1000, 800_000, partitions=12),
    "produce-1kx256": Load("produce 1 KB, 256 partitions", 1000, 800_000, partitions=256, properties=SPREAD),
    "produce-128k": Load("produce 1 KB, 128 KB batches, 1 partition", 1000, 800_000, properties=LARGE),
    "produce-128kx12": Load("produce 1 KB, 128 KB batches, 12 partitions", 1000, 800_000, partitions=12,
                            properties={**LARGE, **SPREAD}),
    "produce-128kx256": Load("produce 1 KB, 128 KB batches, 256 partitions", 1000, 800_000, partitions=256,
                             properties={**LARGE, **SPREAD}),
    "produce-1k-1m": Load("produce 1 KB, 1 MB batches", 1000, 800_000, properties={"batch.size": 1_000_000}),
    "produce-lz4": Load("produce 100 B, lz4", 100, 5_000_000, codec="lz4"),
    "consume-100": Load("consume 100 B", 100, 4_000_000, consume=True),
    "consume-1k": Load("consume 1 KB", 1000, 500_000, consume=True),
    "pipelined": Load("one-record requests, pipelined", 100, 60_000, per_request=True,
                      properties={**ONE_RECORD, "max.in.flight.requests.per.connection": 1000}),
    "alone": Load("one-record requests, alone", 100, 20_000, per_request=True,
                  properties={**ONE_RECORD, "max.in.flight.requests.per.connection": 1}),
}
LATENCY = "latency"
LATENCY_RATE, LATENCY_RECORDS = 1000, 10_000


@dataclass
class Figure:
    """What one run gives to a row; with MB/s of values where it has them, and the share of the machine that
    neither broker nor client used."""

    name: str
    unit: str
    value: float
    rate: float | None = None
    others: float | None = None


class Meter:
    """Processor time of the broker, of our clients and of the whole machine between two moments.
    A client that runs on is named by its `pid`."""

    def __init__(self, broker, pid=None):
        self.broker, self.pid = broker, pid
        self.before = self.read()

    def read(self):
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        clients = usage.ru_utime + usage.ru_stime + (brokers.cpu_s(self.pid) if self.pid else 0.0)
        machine = [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        busy = sum(machine) - machine[3] - machine[4]  # without idle and iowait
        return self.broker.cpu_s(), clients, busy, sum(machine)

    def broker_s(self):
        return self.broker.cpu_s() - self.before[0]

    def others(self):
        broker, clients, busy, total = (now - then for now, then in zip(self.read(), self.before))
        ours = (broker + clients) * os.sysconf("SC_CLK_TCK")
        return max(0.0, busy - ours) / max(total, 1)


def run(load, broker, scale, number):
    """One run of one row against one broker, in a topic of its own."""
    topic, records = f"{'read' if load.consume else 'written'}-{number}", max(1000, int(load.records * scale))
    broker.create_topic(topic, load.partitions)
    readings = 1
    if load.consume:
        # as few and as large batches as a busy topic has
        client(broker, "-P", topic, load.size, records, {**PRODUCER, "batch.size": 100_000})
        readings = READINGS
    os.sync()
    meter = Meter(broker)
    rates = []
    for _ in range(readings):
        if load.consume:
            said = client(broker, "-C", topic, load.size, records, {}, "-p", "0", "-o", "beginning")
        else:
            properties = {**PRODUCER, **load.properties}
            said = client(broker, "-P", topic, load.size, records, properties, "-z", load.codec)
        rates.append(records_per_s(said) * load.size / 1e6)
    used, others = meter.broker_s(), meter.others()
    broker.delete_topic(topic)
    done, rate = records * readings, sum(rates) / len(rates)
    value = used / done * 1e6 if load.per_request else used / (done * load.size / 1e9)
    yield Figure(load.name, load.unit, value, rate, others)
    if load.counted:
        yield Figure(f"{load.name}: acknowledged", "records/s", rate * 1e6 / load.size, others=others)


def client(broker, mode, topic, size, records, properties, *more):
    """Runs the client to its end; returns what it printed."""
    done = subprocess.run(command(broker, mode, topic, size, records, properties, *more),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    said = done.stdout
    if done.returncode != 0 or records_seen(said) != records:
        raise RuntimeError(f"rdkafka_performance {mode} on {broker.name}: {said[-500:]}")
    return said


def command(broker, mode, topic, size, records, properties, *more):
    words = [os.environ["RDKAFKA_PERFORMANCE"], mode, "-t", topic, "-b", f"127.0.0.1:{broker.port}"]
    words += ["-c", str(records), *more]
    words += ["-s", str(size), "-a", "-1"] if mode == "-P" else []
    for key, value in properties.items():
        words += ["-X", f"{key}={value}"]
    return words


def records_seen(said):
    found = re.findall(r"% (\d+) messages (?:produced|\(\d+ bytes\) consumed)", said)
    failed = re.findall(r", (\d+) failed", said)
    return int(found[-1]) - (int(failed[-1]) if failed else 0) if found else 0


def records_per_s(said):
    return float(re.findall(r"(\d+) msgs/s", said)[-1])


def latency(broker, scale, number):
    """End to end at a fixed rate."""
    p50, p99, others = end_to_end(broker, f"timed-{number}", max(1000, int(LATENCY_RECORDS * scale)))
    name = f"end to end at {LATENCY_RATE}/s"
    yield Figure(f"{name}, p50", "µs", p50, others=others)
    yield Figure(f"{name}, p99", "µs", p99, others=others)


def end_to_end(broker, topic, records):
    """Produces and consumes in a topic of its own: (p50 µs, p99 µs, share of the machine that others used)."""
    broker.create_topic(topic, 1)
    times = broker.room / topic
    meter = Meter(broker)
    consume = command(broker, "-C", topic, 0, records, {}, "-p", "0", "-o", "beginning", "-l", "-A", str(times))
    consumer = subprocess.Popen(consume, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.0)  # the consumer's first fetch waits
    client(broker, "-P", topic, 100, records, {"linger.ms": 0}, "-l", "-r", str(LATENCY_RATE))
    consumer.wait(60)
    others = meter.others()
    broker.delete_topic(topic)
    # what the first second shows is the clients' start
    taken = sorted(int(line) for line in times.read_text().split()[LATENCY_RATE // 10:])
    times.unlink()
    return taken[len(taken) // 2], taken[len(taken) * 99 // 100], others
