"""Groups of many members: what their heartbeats, rebalances, commits and mere existence cost the broker.
May not live here: the members (`benches/members`)."""

import os
import subprocess
from dataclasses import dataclass

import loads

GROUPS, MEMBERS = 1000, 4
STEADY_S = 30
REBALANCING, REBALANCES = 500, 3
COMMIT_CONNECTIONS, COMMIT_DEPTH, COMMIT_S = 8, 8, 10
CONSUMERS = 1000
IDLE_GROUPS = 10_000
# Named by the members; the offsets are of ten partitions.
TOPIC = "measured"


@dataclass
class Window:
    """What the members call a measurement: how long it was, how many of what it had, what it cost."""

    seconds: float
    count: int
    broker_s: float
    others: float

    def core(self):
        return self.broker_s / self.seconds * 100


def windows(broker, *words):
    """The members wait at each end of a window until it has been taken down."""
    command = [os.environ["MEMBERS"], str(broker.port), *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as members:
        for line in members.stdout:
            kind, *figures = line.split()
            if kind == "begin":
                meter = loads.Meter(broker, members.pid)
            else:
                yield Window(float(figures[0]), int(figures[1]), meter.broker_s(), meter.others())
            members.stdin.write("\n")
            members.stdin.flush()
    if members.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])} on {broker.name} failed")


def on_topic(measure, partitions):
    """One run in a topic of its own. The null broker knows no groups."""
    def run(broker, scale, number):
        if broker.name == "null":
            return
        broker.create_topic(TOPIC, partitions)
        yield from measure(broker, scale)
        broker.delete_topic(TOPIC)
    return run


def heartbeats(broker, scale):
    groups, seconds = max(10, int(GROUPS * scale)), max(3, int(STEADY_S * scale))
    for window in windows(broker, "heartbeats", groups, MEMBERS, seconds):
        yield loads.Figure(f"heartbeats of {groups} classic groups of {MEMBERS}", "% of a core", window.core(),
                           others=window.others)


def rebalances(broker, scale):
    name = f"a rebalance of {REBALANCING} classic members"
    for window in windows(broker, "rebalance", REBALANCING, REBALANCES):
        yield loads.Figure(f"{name}: processor", "ms CPU", window.broker_s * 1e3, others=window.others)
        yield loads.Figure(f"{name}: JoinGroup → last SyncGroup", "ms", window.seconds * 1e3, others=window.others)


def commits(broker, scale):
    seconds = max(2, int(COMMIT_S * scale))
    for window in windows(broker, "commits", COMMIT_CONNECTIONS, COMMIT_DEPTH, seconds):
        name = "commits of 10 offsets"
        yield loads.Figure(name, "offsets/s", window.count / window.seconds, others=window.others)
        yield loads.Figure(f"{name}: processor", "µs CPU/offset", window.broker_s / window.count * 1e6,
                           others=window.others)


def consumers(broker, scale):
    seconds = max(5, int(STEADY_S * scale))
    joins, steady = windows(broker, "consumers", CONSUMERS, CONSUMERS, seconds)
    name = f"a consumer group of {CONSUMERS} members, {CONSUMERS} partitions"
    yield loads.Figure(f"{name}: first join → stable", "s", joins.seconds, others=joins.others)
    yield loads.Figure(f"{name}: processor until then", "CPU-s", joins.broker_s, others=joins.others)
    yield loads.Figure(f"{name}: heartbeats", "% of a core", steady.core(), others=steady.others)


# What is run against brokers that are up, as in versus.UNDER_LOAD.
UNDER_LOAD = {
    "group-heartbeats": (f"heartbeats of {GROUPS} classic groups of {MEMBERS}", on_topic(heartbeats, MEMBERS)),
    "group-rebalance": (f"rebalance of {REBALANCING} classic members", on_topic(rebalances, REBALANCING)),
    "group-commits": ("pipelined commits of 10 offsets", on_topic(commits, 10)),
    "group-consumers": (f"consumer group of {CONSUMERS} members", on_topic(consumers, CONSUMERS)),
}
LIFE = {"group-memory": f"memory of {IDLE_GROUPS} groups without members"}
ROWS = [*UNDER_LOAD, *LIFE]


def rows(kind, work, chosen, scale):
    """(row, unit, text) of the memory that groups without members take, each kind in a fresh broker."""
    if "group-memory" not in chosen or kind.name == "null":
        return
    count = max(100, int(IDLE_GROUPS * scale))
    for what, name in (("empty", "groups with one offset"), ("left", "groups whose only member left")):
        broker = kind(work)
        broker.start()
        broker.create_topic(TOPIC, 10)
        list(windows(broker, what, 1))
        before = broker.rss_mib()
        list(windows(broker, what, count))
        yield f"{count} {name}: resident", "KiB more each", f"{(broker.rss_mib() - before) * 1024 / count:.2f}"
        broker.discard()
