"""The life of a broker process: start, idle memory, idle connections, stop, many partitions.
May not live here: loads on a running broker."""

import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import wire

STARTS = {"kafka": 5, "null": 20, "ottla": 20}
IDLE_S = 10
MANY_PARTITIONS = 1000
MORE_PARTITIONS = 10_000
CONNECTIONS = 1000


def rows(kind, work, chosen):
    """(row, unit, text) for each chosen row of this kind of broker."""
    if "start" in chosen or "stop" in chosen:
        yield from starts(kind, work, chosen)
    if "idle" in chosen:
        yield from idle(kind, work)
    if "connections" in chosen:
        yield from connections(kind, work)
    if "many" in chosen and kind.name != "null":
        yield from many(kind, work, MANY_PARTITIONS)
    if "more" in chosen and kind.name == "ottla":  # Kafka takes minutes for as many
        yield from many(kind, work, MORE_PARTITIONS)


def starts(kind, work, chosen):
    """Fresh and warm starts, each with its stop."""
    fresh, warm, stops = [], [], []
    for _ in range(STARTS[kind.name]):
        broker = kind(work)
        fresh.append(broker.start())
        stops.append(broker.stop())
        warm.append(broker.start())
        stops.append(broker.stop())
        broker.discard()
    if "start" in chosen:
        if kind.name == "null":
            yield "exec → first Metadata, fresh", "ms, best", summary(fresh)
        else:
            fsyncs = count_fsyncs(kind, work)
            extra = f"; format before it {broker.format_ms:.0f}" if kind.name == "kafka" else ""
            yield "exec → first Metadata, fresh", "ms, best", f"{summary(fresh)}; {fsyncs[0]} fsyncs{extra}"
            yield "exec → first Metadata, warm", "ms, best", f"{summary(warm)}; {fsyncs[1]} fsyncs"
    if "stop" in chosen and kind.name != "null":
        stops.sort()
        yield "SIGTERM → exit, idle", "ms, median", f"{stops[len(stops) // 2]:.1f} (slowest {stops[-1]:.1f})"


def summary(times):
    times = sorted(times)
    return f"{times[0]:.1f} of {len(times)} (median {times[len(times) // 2]:.1f})"


def count_fsyncs(kind, work):
    """Calls between exec and the first Metadata answer, of a fresh and of a warm start."""
    broker, counts = kind(work), []
    for trace in (broker.room / "fresh.trace", broker.room / "warm.trace"):
        broker.start(("strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", str(trace)))
        counts.append(len(re.findall(r"(?:sync|sync_file_range)\(", trace.read_text())))
        tracer = broker.process.pid
        child = Path(f"/proc/{tracer}/task/{tracer}/children").read_text().split()[0]
        os.kill(int(child), signal.SIGTERM)
        broker.process.wait(60)
    broker.discard()
    return counts


def idle(kind, work):
    broker = kind(work)
    broker.start()
    before = broker.cpu_s()
    time.sleep(IDLE_S)
    used = (broker.cpu_s() - before) / IDLE_S
    yield f"resident after {IDLE_S} s idle", "MiB", f"{broker.rss_mib():.1f}"
    yield "processor, idle", "% of a core", f"{used * 100:.1f}"
    broker.discard()


def connections(kind, work):
    """Clients that have asked for the versions and then say nothing."""
    broker = kind(work)
    broker.start()
    # the broker has the limit that it was given, our end needs more
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], CONNECTIONS + 200), limits[1]))
    time.sleep(2)
    before, clients = broker.rss_mib(), []
    for _ in range(CONNECTIONS):
        clients.append(wire.connect(broker.port, 60.0))
        wire.api_versions(clients[-1])
    time.sleep(2)
    yield f"{CONNECTIONS} idle connections: resident", "MiB more", f"{broker.rss_mib() - before:.1f}"
    for client in clients:
        client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    broker.discard()


def many(kind, work, partitions):
    """Topics of a thousand partitions each: memory and descriptors, stop and the next start."""
    broker = kind(work)
    broker.start()
    for number in range(partitions // MANY_PARTITIONS):
        broker.create_topic(f"many-{number}", MANY_PARTITIONS)
    time.sleep(2)
    row = f"{partitions} partitions"
    yield f"{row}: resident", "MiB", f"{broker.rss_mib():.1f}"
    times = [(broker.stop(), broker.start()) for _ in range(3)]
    yield f"{row}: SIGTERM → exit", "ms, median of 3", middle(time[0] for time in times)
    yield f"{row}: exec → first Metadata", "ms, median of 3", middle(time[1] for time in times)
    time.sleep(2)
    yield f"{row}: after that start", "MiB, descriptors", f"{broker.rss_mib():.1f}, {broker.descriptors()}"
    broker.discard()


def middle(times):
    times = sorted(times)
    return f"{times[1]:.0f} (slowest {times[2]:.0f})"


def processors():
    names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    kernel = subprocess.run(["uname", "-r"], stdout=subprocess.PIPE, text=True).stdout.strip()
    return f"{len(names)} × {names[0]}, Linux {kernel}"
