"""far_bootstrap.py HOST:PORT : passes bytes on to a broker, but answers nothing for the first 50 ms of a connection.
Prints the address it listens on; ends when its standard input does."""

import socket
import sys
import threading
import time

host, port = sys.argv[1].rsplit(":", 1)


def carry(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


def serve(client):
    time.sleep(0.05)
    try:
        broker = socket.create_connection((host, int(port)))
    except OSError:
        client.close()
        return
    threading.Thread(target=carry, args=(client, broker), daemon=True).start()
    carry(broker, client)


def accept(listener):
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


door = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(door,), daemon=True).start()
print(f"127.0.0.1:{door.getsockname()[1]}", flush=True)
sys.stdin.read()
