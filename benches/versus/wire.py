"""The few requests that the bench sends itself, at versions that Kafka 4.4 still takes.
Lives here: frames. May not live here: processes, what is measured."""

import socket
import struct
import time

FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 1, 2, 3, 18, 19, 20


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def connect(port, patience, alive=lambda: True):
    """A connection as soon as the port is open; asks every 100 µs while the broker is `alive`."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and alive():
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=patience)
        except OSError:
            time.sleep(0.0001)
            continue
        # a port of the range that the system gives to clients may end up connected to itself
        if connection.getsockname() != connection.getpeername():
            return connection
        connection.close()
    raise TimeoutError(f"nobody serves on port {port}")


def ask(connection, key, version, body):
    """The body of the answer."""
    frame = struct.pack(">hhi", key, version, 1) + text("versus") + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    size = struct.unpack(">i", receive(connection, 4))[0]
    return receive(connection, size)[4:]


def receive(connection, size):
    taken = b""
    while len(taken) < size:
        more = connection.recv(size - len(taken))
        if not more:
            raise ConnectionError("the broker closed the connection")
        taken += more
    return taken


def metadata(port, patience, alive):
    """Waits for the first Metadata answer (v4, all topics)."""
    with connect(port, patience, alive) as connection:
        return ask(connection, METADATA, 4, struct.pack(">i?", -1, False))


def api_versions(connection):
    """What every client sends first (v0)."""
    return ask(connection, API_VERSIONS, 0, b"")


def offset_at(connection, topic, timestamp):
    """The first offset of partition 0 whose record is not older (ListOffsets v1)."""
    body = struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">iiq", 1, 0, timestamp)
    answer = ask(connection, LIST_OFFSETS, 1, body)
    code, _, offset = struct.unpack_from(">hqq", answer, 14 + len(topic))
    if code != 0:
        raise RuntimeError(f"ListOffsets of {topic} at {timestamp}: error {code}")
    return offset


def first_fetched(connection, topic, offset, most):
    """Base offset of the first batch that a Fetch from `offset` of partition 0 brings (v4)."""
    body = struct.pack(">iiiibi", -1, 500, 1, most, 0, 1) + text(topic) + struct.pack(">iiqi", 1, 0, offset, most)
    answer = ask(connection, FETCH, 4, body)
    code = struct.unpack_from(">h", answer, 18 + len(topic))[0]
    size = struct.unpack_from(">i", answer, 40 + len(topic))[0]
    if code != 0 or size < 8:
        raise RuntimeError(f"Fetch of {topic} from {offset}: error {code}, {size} bytes")
    return struct.unpack_from(">q", answer, 44 + len(topic))[0]


def create_topic(port, name, partitions, configs):
    topic = text(name) + struct.pack(">ihii", partitions, 1, 0, len(configs))
    topic += b"".join(text(key) + text(value) for key, value in configs.items())
    body = struct.pack(">i", 1) + topic + struct.pack(">i?", 60_000, False)
    with connect(port, 60.0) as connection:
        answer = ask(connection, CREATE_TOPICS, 2, body)
    code = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name))[0]
    if code != 0:
        raise RuntimeError(f"topic {name} could not be created: error {code}")


def delete_topic(port, name):
    body = struct.pack(">i", 1) + text(name) + struct.pack(">i", 60_000)
    with connect(port, 60.0) as connection:
        ask(connection, DELETE_TOPICS, 1, body)
