"""What hostile clients cost a server and its other clients: gatling beside nginx and h2o, one worker each, in turns.

    hostile.py BUILD [memory|full|references]...

memory      200 connections of HTTP/2 with 101 requests each that do not end, whose path of 4,000 octets is named by one:
            5 KB from each. Resident memory that the server took.
full        a server with 4,096 descriptors, held by connections that send part of a head and come again when they are
            closed: new clients that were served within 3 s, and connections of clients that were cut while they used
            them, a request every 300 ms.
references  8 connections that send header blocks of references to a header of 4,000 octets, 5 MB/s in all, and come
            again: processor time for an octet, and the latencies of a good client, 99 %.

gatling and nginx write an access log to /dev/null for the first.
"""

import asyncio
import contextlib
import multiprocessing
import resource
import socket
import sys
import threading
import time
from pathlib import Path

import servers
from instructions import references

NAMES = ("gatling", "nginx", "h2o")
DESCRIPTORS, SECONDS = 4096, 15
LIMITED = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"\0\4\0\0\0\0")
PATH = b"\x44\x7f\xa1\x1e/" + b"\xff" * 3999
UNENDED = PREFACE + frame(1, 4, 1, b"\x82\x86\x41\x01a" + PATH) + b"".join(
    frame(1, 4, 3 + 2 * n, b"\x82\x86\xbf\xbe") for n in range(100))  # fmt: skip


def start(all_servers, name, protocol, prefix=(), log=False):
    port = servers.free_port()
    command = all_servers.command(name, port, 1, None, False, "", protocol)
    if name == "gatling":
        command = [word for word in command if word not in ("-T", "3600") and not (log and word == "-n")]
    elif log:
        path = command[-1]
        path.write_text(path.read_text().replace("access_log off", "access_log /dev/null"))
    server = servers.Server(name, port, protocol, [*prefix, *command], set(all_servers.cores[:1]), all_servers.directory)
    all_servers.running.append(server)
    return server


def memory(all_servers, name):
    server = start(all_servers, name, "h2c", log=True)
    before, most, held = server.resident(), 0, []
    for _ in range(200):
        held.append(socket.create_connection(("127.0.0.1", server.port)))
        with contextlib.suppress(OSError):
            held[-1].sendall(UNENDED)
    for _ in range(20):
        time.sleep(0.05)
        most = max(most, server.resident() - before)
    for s in held:
        s.close()
    all_servers.stop(server)
    return {"memory_mb": most / 1e6}


# --- a full server ---

GET = b"GET /1k HTTP/1.1\r\nHost: a\r\n\r\n"


async def holder(port, until):
    while time.monotonic() < until:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 5)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX")
            await asyncio.wait_for(reader.read(1), max(0.1, until - time.monotonic()))
            writer.close()
        await asyncio.sleep(0.05)


async def holders(port, until):
    await asyncio.gather(*(holder(port, until) for _ in range(DESCRIPTORS + 500)))


def hold(port, until):
    """In a process of its own, so that nobody waits for it but the server."""
    asyncio.run(holders(port, until))


async def request(reader, writer):
    writer.write(GET)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(1024)
    return head.startswith(b"HTTP/1.1 200")


async def newcomer(port):
    """Whether it is served in time."""
    try:
        async with asyncio.timeout(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            good = await request(reader, writer)
            writer.close()
            return good
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return False


async def regular(port, until):
    """How often it is cut."""
    cut = 0
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while time.monotonic() < until:
                async with asyncio.timeout(5):
                    await request(reader, writer)
                await asyncio.sleep(0.3)
            writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            cut += 1
            await asyncio.sleep(0.3)
    return cut


async def crowd(port):
    until = time.monotonic() + SECONDS
    regulars = [asyncio.create_task(regular(port, until)) for _ in range(200)]
    await asyncio.sleep(1)
    attack = multiprocessing.Process(target=hold, args=(port, until))
    attack.start()
    await asyncio.sleep(4)
    served = []
    while time.monotonic() < until - 3:
        served.append(asyncio.create_task(newcomer(port)))
        await asyncio.sleep(0.05)
    served = await asyncio.gather(*served)
    cut = await asyncio.gather(*regulars)
    attack.join()
    return {"new_served": f"{sum(served)} of {len(served)}", "regulars_cut": sum(cut)}


def full(all_servers, name):
    most, servers.CONNECTIONS_MAX = servers.CONNECTIONS_MAX, DESCRIPTORS - 300
    server = start(all_servers, name, "http", prefix=LIMITED)
    found = asyncio.run(crowd(server.port))
    servers.CONNECTIONS_MAX = most
    all_servers.stop(server)
    return found


# --- references ---


def flood_with_references(port, until, sent):
    data = references()
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as s:
            s.settimeout(5)
            for at in range(0, len(data), 4096):
                begun = time.monotonic()
                sent[0] += s.send(data[at : at + 4096])
                time.sleep(max(0, 4096 / (5e6 / 8) - (time.monotonic() - begun)))


def latencies(port, until):
    found = []
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as s:
            s.settimeout(10)
            s.sendall(PREFACE)
            while time.monotonic() < until:
                begun = time.monotonic()
                s.sendall(frame(6, 0, 0, b"12345678"))  # PING: by the same worker, whatever the protocol costs
                got = b""
                while b"12345678" not in got:
                    piece = s.recv(4096)
                    if not piece:
                        raise ConnectionError
                    got += piece
                found.append(time.monotonic() - begun)
                time.sleep(0.02)
    return sorted(found)


def references_flood(all_servers, name):
    server = start(all_servers, name, "h2c")
    until, sent, before = time.monotonic() + 5, [0], server.cpu_s()
    threads = [threading.Thread(target=flood_with_references, args=(server.port, until, sent)) for _ in range(8)]
    for thread in threads:
        thread.start()
    found = latencies(server.port, until)
    for thread in threads:
        thread.join()
    used = server.cpu_s() - before
    all_servers.stop(server)
    return {"mb_sent": sent[0] / 1e6, "ns_per_octet": used / sent[0] * 1e9, "p99_ms": found[len(found) * 99 // 100] * 1e3}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with servers.Servers(Path(sys.argv[1])) as running:
        running.add_file("1k", 1024)
        cases = {"memory": memory, "full": full, "references": references_flood}
        for case in (cases[name] for name in sys.argv[2:] or cases):
            for server_name in filter(servers.installed, NAMES):
                row = {key: f"{value:.1f}" if isinstance(value, float) else value for key, value in case(running, server_name).items()}
                print(f"{case.__name__:18}{server_name:10}" + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
