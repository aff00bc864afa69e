"""The three brokers as processes: started on a free port in a fresh directory, watched through /proc.
Lives here: how each is started and stopped. May not live here: loads, what is printed."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import wire

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 300


def free_port():
    """Like the compat tests, below the range that the system gives to clients."""
    first, last = os.environ.get("OTTLA_COMPAT_PORTS", "20000-29999").split("-")
    count = int(last) - int(first) + 1
    for step in range(count):
        port = int(first) + (os.getpid() * 37 + free_port.taken + step) % count
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        free_port.taken += step + 1
        return port
    raise RuntimeError("no free port")


free_port.taken = 0


def cpu_s(pid):
    """Processor time so far: utime + stime of /proc/PID/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


class Broker:
    """One broker; `start` may follow `stop`, on the same port and data."""

    name = ""
    # All that were made, so that none outlives the bench.
    made = []

    def __init__(self, work):
        self.made.append(self)
        self.port = free_port()
        self.room = Path(work) / f"{self.name}-{self.port}"
        self.room.mkdir(parents=True)
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self, wrapper=()):
        """Milliseconds from exec to the first Metadata answer."""
        command = [*wrapper, *self.command()]
        with open(self.room / "log", "ab") as log:
            began = time.perf_counter()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wire.metadata(self.port, PATIENCE_S, lambda: self.process.poll() is None)
        return (time.perf_counter() - began) * 1e3

    def stop(self):
        """Milliseconds from SIGTERM to the end."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        return (time.perf_counter() - began) * 1e3

    def cpu_s(self):
        return cpu_s(self.process.pid)

    def rss_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def bytes_from_disk(self):
        """What was not in the page cache when the broker read or sent it, so far."""
        return int(re.search(r"^read_bytes: (\d+)", Path(f"/proc/{self.process.pid}/io").read_text(), re.M)[1])

    def logs_of(self, topic):
        """The data files of partition 0."""
        return sorted((self.room / "data" / f"{topic}-0").glob("*.log"))

    def create_topic(self, name, partitions, **configs):
        """`configs` have `_` for each dot of Kafka's names."""
        wire.create_topic(self.port, name, partitions, {key.replace("_", "."): value for key, value in configs.items()})

    def delete_topic(self, name):
        wire.delete_topic(self.port, name)

    def discard(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.room, ignore_errors=True)


class Ottla(Broker):
    name = "ottla"

    def command(self):
        binary, data = os.environ["OTTLA_BINARY"], str(self.room / "data")
        # As for Kafka below; the next run then finds memory that the host has handed out already, as the null broker's.
        delays = ["--set", "log.segment.delete.delay.ms=1000", "--set", "group.initial.rebalance.delay.ms=0"]
        return [binary, "--data-dir", data, "--port", str(self.port), "--http-port", "0", *delays]


class Null(Broker):
    """Knows nothing of CreateTopics: every topic exists, with the number of partitions it was started with."""

    name = "null"

    def __init__(self, work):
        super().__init__(work)
        self.partitions = 1

    def command(self):
        return [os.environ["NULL_BROKER"], str(self.port), str(self.room), str(self.partitions)]

    def logs_of(self, topic):
        return [self.room / f"{topic}-0"]

    def create_topic(self, name, partitions, **configs):
        if partitions != self.partitions:
            self.partitions = partitions
            self.stop()
            self.start()

    def delete_topic(self, name):
        self.stop()
        for file in self.room.glob(f"{name}-*"):
            file.unlink()
        self.start()


class Kafka(Broker):
    """One combined node with the JVM options of Kafka's own start script; formatted once."""

    name = "kafka"
    JVM = """-Xmx1G -Xms1G -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20
        -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent
        -Djava.awt.headless=true""".split()

    def __init__(self, work):
        super().__init__(work)
        controller = free_port()
        (self.room / "server.properties").write_text(
            "node.id=1\nprocess.roles=broker,controller\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self.room / 'data'}\noffsets.topic.replication.factor=1\n"
            # files of deleted topics go at once, so that runs do not share the disk with them
            "log.segment.delete.delay.ms=1000\ngroup.initial.rebalance.delay.ms=0\n"
        )
        (self.room / "log4j2.properties").write_text("rootLogger.level=WARN\n")
        self.format_ms = self.format()

    def java(self, *words):
        log4j = f"-Dlog4j2.configurationFile={self.room / 'log4j2.properties'}"
        return ["java", *self.JVM, log4j, "-cp", f"{os.environ['KAFKA_LIBS']}/*", *words]

    def format(self):
        properties = str(self.room / "server.properties")
        began = time.perf_counter()
        command = self.java("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", properties)
        subprocess.run(command, check=True, capture_output=True)
        return (time.perf_counter() - began) * 1e3

    def command(self):
        return self.java("kafka.Kafka", str(self.room / "server.properties"))


KINDS = {kind.name: kind for kind in (Null, Kafka, Ottla)}
