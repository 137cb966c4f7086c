"""Measures the server's resident bytes for each idle WebSocket, both of its connections together.

    websockets.py BUILD [--count N]

An application (in its own process) switches protocols and is then silent; the clients send what a
browser would. A WebSocket takes a connection to the application, and a worker allows a quarter of
its descriptors for these: hence four workers.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import servers

WARM, AT_ONCE, WORKERS, QUIET_S = 100, 100, 4, 2
HEAD = """GET /ws HTTP/1.1\r
Host: www.example.org\r
Connection: keep-alive, Upgrade\r
Upgrade: websocket\r
Origin: https://www.example.org\r
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36\r
Accept-Encoding: gzip, deflate, br\r
Accept-Language: en-US,en;q=0.9\r
Cookie: session=0123456789abcdef0123456789abcdef\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r
\r
"""
CHANGE = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"


async def handle(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(CHANGE)
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


async def application(port):
    async with await asyncio.start_server(handle, "127.0.0.1", port, backlog=4096) as server:
        await server.serve_forever()


async def open_one(port, n):
    """Opens a WebSocket. Clients have many addresses, since one has too few ports, and would be
    limited."""
    source = (f"127.0.{1 + n // 200 % 250}.{1 + n % 200}", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source)
    writer.write(HEAD.encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in answer:
        sys.exit(f"websockets: {answer!r}")
    return writer


async def measure(server, count):
    kept = [await open_one(server.port, n) for n in range(WARM)]
    before = server.resident()
    for first in range(WARM, count, AT_ONCE):
        kept += await asyncio.gather(*(open_one(server.port, n) for n in range(first, first + AT_ONCE)))
    await asyncio.sleep(QUIET_S)
    print(f"websockets    gatling   {(server.resident() - before) / (len(kept) - WARM):8.0f} bytes each, of {len(kept)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--count", type=int, default=10_000)
    arguments = parser.parse_args()
    with servers.Servers(arguments.build) as running:
        up, port = servers.free_port(), servers.free_port()
        child = os.fork()
        if not child:
            asyncio.run(application(up))
        root = running.directory / "rules"
        root.mkdir()
        (root / "_redirects").write_text(f"/ws http://127.0.0.1:{up}/ws 200\n")
        command = [arguments.build / "gatling", "-j", WORKERS, "-n", "--no-https", "--upstream", "127.0.0.1", "-i", "127.0.0.1", "-p", port, root]
        running.running.append(servers.Server("gatling", port, "http", command, set(running.cores), running.directory))
        try:
            asyncio.run(measure(running.running[0], arguments.count))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
