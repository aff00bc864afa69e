"""Apache Kafka, the null broker and Ottla in turn; called by `run`, which builds what is needed.
Prints one markdown table: what a load cost the broker, as the median of the runs with the slowest, and as
a ratio to the null broker of the same minute. Timings depend on the machine; ratios much less so.
Lives here: options, the order of runs, the table."""

import argparse
import itertools
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import brokers
import cold
import commit
import groups
import life
import loads
import sizes

LIFE = {"start": "exec → first Metadata answer, with fsyncs", "stop": "SIGTERM → exit",
        "idle": "memory and processor when idle", "connections": f"memory of {life.CONNECTIONS} idle connections",
        "many": f"{life.MANY_PARTITIONS} partitions", "more": f"{life.MORE_PARTITIONS} partitions (Ottla)",
        "terabyte": "a log of 1 TB: start, seeks by offset and time (Ottla)",
        **groups.LIFE}
# What is run against brokers that are up: row → (what it is, function of broker, scale and number of the run).
UNDER_LOAD = {
    **{row: (load.name, partial(loads.run, load)) for row, load in loads.LOADS.items()},
    "latency": (f"end to end at {loads.LATENCY_RATE} records/s", loads.latency),
    "commit": (f"acknowledged requests/s with flush.messages=1, {commit.MANY} producers beside 1", commit.run),
    "cold": (f"end to end at {loads.LATENCY_RATE} records/s beside a consumer of cold data", cold.run),
    "grown": ("produce and consume at 100 MB and at 10 GB", sizes.grown),
    **groups.UNDER_LOAD,
}
# Names of several rows.
SETS = {"groups": groups.ROWS}
WARM_UP = loads.Load("warm-up", 100, 1_500_000, partitions=1)


def options():
    parser = argparse.ArgumentParser(prog="benches/versus/run", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="", help="comma-separated, `groups` for all group-*; all without it (see --list)")
    parser.add_argument("--brokers", default="null,kafka,ottla", help="comma-separated, in this order")
    parser.add_argument("--runs", type=int, default=3, help="runs of each load, interleaved (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the records of each load (1)")
    parser.add_argument("--dir", help="where brokers keep their data; a temporary directory without it")
    parser.add_argument("--list", action="store_true", help="names the rows")
    return parser.parse_args()


def all_rows():
    return {**{row: what for row, (what, _) in UNDER_LOAD.items()}, **LIFE}


def main():
    chosen = options()
    if chosen.list:
        for name, what in all_rows().items():
            print(f"{name:16} {what}")
        return 0
    words = [word for word in chosen.rows.split(",") if word]
    rows = [row for word in words for row in SETS.get(word, [word])] or list(all_rows())
    names = chosen.brokers.split(",")
    strange = set(rows) - set(all_rows()) | set(names) - set(brokers.KINDS)
    if strange:
        print(f"error: unknown: {', '.join(sorted(strange))}\n hint: see --list", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was begun is cleared away
    work = tempfile.mkdtemp(prefix="ottla-versus-", dir=chosen.dir)
    try:
        table = measure(rows, [brokers.KINDS[name] for name in names], chosen, work)
    finally:
        for broker in brokers.Broker.made:
            broker.discard()
        shutil.rmtree(work, ignore_errors=True)
    print(conditions(chosen))
    table.print(names)
    return 0


def measure(rows, kinds, chosen, work):
    table = Table()
    under_load = [row for row in rows if row in UNDER_LOAD]
    writes_much = [row for row in under_load if row not in groups.UNDER_LOAD]
    if under_load:
        running = [kind(work) for kind in kinds]
        try:
            for broker in running:
                broker.start()
                if writes_much:
                    list(loads.run(WARM_UP, broker, 1.0, "warm-up"))
            for row in under_load:
                if row in writes_much:
                    pre_touch(work, 4 << 30)
                interleave(row, running, chosen, table)
        finally:
            for broker in running:
                broker.discard()
    for kind in kinds:
        of_one = (life.rows(kind, work, rows), sizes.rows(kind, work, rows, chosen.scale),
                  groups.rows(kind, work, rows, chosen.scale))
        for name, unit, text in itertools.chain(*of_one):
            table.put(name, unit, kind.name, text)
            note(f"{name}, {kind.name}: {text} {unit}")
    return table


def interleave(row, running, chosen, table):
    """A, B, C, A, B, C: a disturbance hits all, and the null figure is of the same minute."""
    measure_one = UNDER_LOAD[row][1]
    for number in range(chosen.runs):
        for broker in running:
            for figure in measure_one(broker, chosen.scale, f"{row}-{number}"):
                table.add(figure, broker.name)
                rate = "" if figure.rate is None else f", {figure.rate:.0f} MB/s"
                note(f"{figure.name}, run {number + 1}, {broker.name}: {figure.value:.4g} {figure.unit}{rate}, "
                     f"others {figure.others:.0%}")


def pre_touch(work, size):
    """Lets the host hand out the pages of the page cache before they are measured."""
    path = Path(work) / "touched"
    with open(path, "wb") as file:
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    path.unlink()
    os.sync()


def note(text):
    print(text, file=sys.stderr, flush=True)


def conditions(chosen):
    kafka = f"Apache Kafka {os.environ.get('KAFKA_VERSION', '?')} (1 GiB heap, G1, warm)"
    ottla = subprocess.run([os.environ["OTTLA_BINARY"], "--version"], stdout=subprocess.PIPE, text=True).stdout
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    producer = " ".join(f"{key}={value}" for key, value in loads.PRODUCER.items())
    return (
        f"{life.processors()}; {kafka}; {ottla.strip()}.\n"
        f"One node, one client (rdkafka_performance of librdkafka), acks=all, no fsync, {producer}.\n"
        f"Broker CPU = utime + stime; GB = 10⁹ bytes of values. Median of {chosen.runs} interleaved runs, the slowest\n"
        f"in brackets, then MB/s. `others` is the share of the machine that neither broker nor client used.\n"
        f"Load average at the end: {load}.\n"
    )


class Table:
    def __init__(self):
        self.rows = {}

    def row(self, name, unit):
        return self.rows.setdefault(name, {"unit": unit, "cells": {}, "others": []})

    def add(self, figure, broker):
        row = self.row(figure.name, figure.unit)
        row["cells"].setdefault(broker, []).append((figure.value, figure.rate))
        row["others"].append(figure.others)

    def put(self, name, unit, broker, text):
        self.row(name, unit)["cells"][broker] = text

    def print(self, names):
        ratios = [name for name in ("kafka", "ottla") if name in names and "null" in names]
        heads = ["", "unit", *names, *(f"{name} ÷ null" for name in ratios)]
        heads += ["kafka ÷ ottla"] if {"kafka", "ottla"} <= set(names) else []
        heads += ["others"]
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for name, row in self.rows.items():
            cells = row["cells"]
            line = [name, row["unit"], *(show(cells.get(broker)) for broker in names)]
            line += [ratio(cells, broker, "null") for broker in ratios]
            line += [ratio(cells, "kafka", "ottla")] if "kafka ÷ ottla" in heads else []
            line += [f"{statistics.mean(row['others']):.0%}" if row["others"] else ""]
            print(f"| {' | '.join(line)} |")


def show(cell):
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    values, rates = [value for value, _ in cell], [rate for _, rate in cell if rate is not None]
    digits = 0 if max(values) >= 100 else 1 if max(values) >= 10 else 2
    text = f"{statistics.median(values):.{digits}f} ({max(values):.{digits}f})"
    return f"{text}, {statistics.median(rates):.0f} MB/s" if rates else text


def ratio(cells, above, below):
    if isinstance(cells.get(above), list) and isinstance(cells.get(below), list):
        middle = [statistics.median(value for value, _ in cells[name]) for name in (above, below)]
        return f"{middle[0] / middle[1]:.2f}" if middle[1] else "–"
    return ""


if __name__ == "__main__":
    sys.exit(main())
