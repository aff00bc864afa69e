"""What the size of a log costs: 10 GB beside 100 MB under load, and opening and seeking in 1 TB.
May not live here: how the sparse log of 1 TB is made (`benches/sparse_log.rs`)."""

import os
import random
import re
import subprocess
import time

import loads
import wire

SIZE = 1000
SMALL_RECORDS, LARGE_RECORDS, TIMED_RECORDS = 100_000, 10_000_000, 400_000
FILLING = {**loads.PRODUCER, "batch.size": 1_000_000}

TERABYTE_SEGMENTS = 1000
SEEKS = 4000


def grown(broker, scale, number):
    """Produce and consume at the end of a small log and of the same log grown large; one run."""
    if not number.endswith("-0"):
        return
    topic, end, timed = f"grown-{number}", 0, int(TIMED_RECORDS * scale)
    broker.create_topic(topic, 1)
    for name, size in (("100 MB", int(SMALL_RECORDS * scale)), ("10 GB", int(LARGE_RECORDS * scale))):
        loads.client(broker, "-P", topic, SIZE, size - end, FILLING)
        os.sync()
        meter = loads.Meter(broker)
        said = loads.client(broker, "-P", topic, SIZE, timed, loads.PRODUCER)
        yield figure(f"produce 1 KB to a log of {name}", meter, [said], timed)
        meter = loads.Meter(broker)
        said = [loads.client(broker, "-C", topic, SIZE, timed, {}, "-p", "0", "-o", str(size))
                for _ in range(loads.READINGS)]
        yield figure(f"consume 1 KB from a log of {name}", meter, said, timed)
        end = size + timed
    broker.delete_topic(topic)


def figure(name, meter, said, records):
    rates = [loads.records_per_s(one) * SIZE / 1e6 for one in said]
    cost = meter.broker_s() / (records * len(said) * SIZE / 1e9)
    return loads.Figure(name, "CPU-s/GB", cost, sum(rates) / len(rates), meter.others())


def rows(kind, work, chosen, scale):
    """(row, unit, text) of the log of 1 TB; its generator writes what Ottla finds after a clean stop."""
    if "terabyte" not in chosen or kind.name != "ottla":
        return
    broker, topic, segments = kind(work), "terabyte", max(2, int(TERABYTE_SEGMENTS * scale))
    broker.start()
    broker.create_topic(topic, 1, retention_ms="-1")
    broker.stop()
    command = [os.environ["SPARSE_LOG"], str(broker.room / "data"), topic, str(segments)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    steps, first_ms = (int(number) for number in re.findall(r"(\d+) (?:steps|ms)", said))
    row = f"a log of {segments} sparse segments of 1 GiB"
    starts = sorted(open_again(broker) for _ in range(3))
    yield f"{row}: exec → first Metadata", "ms, median of 3", f"{starts[1]:.1f} (slowest {starts[2]:.1f})"
    with wire.connect(broker.port, 60.0) as connection:
        yield f"{row}: seek by time", "ms CPU", seeks(broker, steps, lambda at: by_time(connection, topic, at, first_ms))
        yield f"{row}: seek by offset", "ms CPU", seeks(broker, steps, lambda at: by_offset(connection, topic, at))
    broker.discard()


def open_again(broker):
    if broker.process.poll() is None:
        broker.stop()
    return broker.start()


def seeks(broker, steps, seek):
    """The first one finds nothing opened yet; then many at random."""
    places = random.Random(1)
    before = time.perf_counter()
    seek(places.randrange(steps))
    first_ms = (time.perf_counter() - before) * 1e3
    before = broker.cpu_s()
    for _ in range(SEEKS):
        seek(places.randrange(steps))
    used_ms = (broker.cpu_s() - before) / SEEKS * 1e3
    return f"{used_ms:.3f} of {SEEKS} at random (the first took {first_ms:.1f} ms)"


def by_time(connection, topic, step, first_ms):
    """The generator gives each step its own millisecond and two offsets."""
    found = wire.offset_at(connection, topic, first_ms + step)
    if found != 2 * step:
        raise RuntimeError(f"step {step} has the offset {2 * step}, ListOffsets says {found}")


def by_offset(connection, topic, step):
    found = wire.first_fetched(connection, topic, 2 * step, 1)
    if found != 2 * step:
        raise RuntimeError(f"Fetch from {2 * step} begins at {found}")
