"""A hot producer beside a consumer that reads what is not in the page cache.
Lives here: the readers and how the cache is emptied. May not live here: how the latency is taken."""

import os
import subprocess
import threading

import loads

RECORDS, SIZE = 2_000_000, 1000
TIMED_RECORDS = 6_000
# Of what was read; less from the disk and the consumer was not a cold one.
FROM_DISK_LEAST = 0.5


def run(broker, scale, number):
    """p99 alone, beside a consumer of cached data, and beside the same consumer of cold data. The null broker
    forgets all topics when one is deleted."""
    if broker.name == "null":
        return
    topic, records = f"stored-{number}", max(100_000, int(RECORDS * scale))
    broker.create_topic(topic, 1)
    loads.client(broker, "-P", topic, SIZE, records, {**loads.PRODUCER, "batch.size": 100_000})
    os.sync()
    for name, reader in (("alone", None), ("beside a consumer of cached data", Reader(broker, topic, records, False)),
                         ("beside a consumer of cold data", Reader(broker, topic, records, True))):
        if reader:
            reader.start()
        p50, p99, others = loads.end_to_end(broker, f"hot-{number}", max(1000, int(TIMED_RECORDS * scale)))
        rate = reader.stop() if reader else None
        yield loads.Figure(f"end to end at {loads.LATENCY_RATE}/s {name}, p99", "µs", p99, rate, others)
    broker.delete_topic(topic)


class Reader(threading.Thread):
    """Reads the topic again and again until it is stopped, from the disk each time if `cold`."""

    def __init__(self, broker, topic, records, cold):
        super().__init__(daemon=True)
        self.broker, self.topic, self.records, self.cold = broker, topic, records, cold
        self.stopped, self.rates, self.failure = threading.Event(), [], None

    def run(self):
        try:
            while not self.stopped.is_set():
                self.read()
        except Exception as failure:  # told to who stops it
            self.failure = failure

    def read(self):
        if self.cold:
            self.forget()
        before = self.broker.bytes_from_disk()
        said = loads.client(self.broker, "-C", self.topic, SIZE, self.records, {}, "-p", "0", "-o", "beginning")
        share = (self.broker.bytes_from_disk() - before) / (self.records * SIZE)
        if self.cold and share < FROM_DISK_LEAST:
            raise RuntimeError(f"only {share:.0%} of the cold data came from the disk")
        self.rates.append(loads.records_per_s(said) * SIZE / 1e6)

    def forget(self):
        """The log's pages leave the page cache."""
        for path in self.broker.logs_of(self.topic):
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def stop(self):
        """Waits for the reading that is under way; returns MB/s."""
        self.stopped.set()
        self.join(300)
        if self.failure:
            raise self.failure
        return sum(self.rates) / len(self.rates)
