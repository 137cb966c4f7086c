"""Measures what hostile clients cost a server and its other clients: gatling, nginx and h2o in
turns, with one worker each.

    hostile.py BUILD [CASE]...

memory      200 HTTP/2 connections with 101 unfinished requests each, all for one path of 4,000 octets that HPACK sends
            once: 5 KB from each. Measures the growth of resident memory.
full        A server with 4,096 descriptors; attackers send part of a head on each connection and open it again when it
            is closed. Counts new clients that are served within 3 s, and connections of regular clients, with a request
            every 300 ms, that the server closes.
crowd       The same with two workers and 20,000 descriptors: up to 40,500 connections, from six addresses.
references  8 connections send header blocks of references to a header of 4,000 octets, 5 MB/s in all, and open again
            when they are closed. Measures processor time for an octet and the 99 % latency of a regular client.
readers     5,000 connections ask for 10 MB and read nothing. Measures what the kernel holds for TCP, on both sides, and
            the growth of resident memory.
handshakes  8,000 connections send the first message of TLS and nothing more. Measures the growth of resident memory, and
            what is left of it 3 s after they are closed.

The servers have production settings (servers.py); for "memory", gatling and nginx write an access
log to /dev/null.
"""

import argparse
import asyncio
import contextlib
import logging
import select
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes
import servers
from instructions import frame, references

NAMES = ("gatling", "nginx", "h2o")
DESCRIPTORS, SECONDS = 4096, 15
READERS, HANDSHAKES, SETTLED, PATIENCE_S = 5000, 8000, 1.01, 30
MANY, HELD_MAX = 20_000, 8_000  # descriptors of a process; connections of a process that holds them


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"\0\4\0\0\0\0")
PATH = b"\x44\x7f\xa1\x1e/" + b"\xff" * 3999
UNENDED = PREFACE + frame(1, 4, 1, b"\x82\x86\x41\x01a" + PATH) + b"".join(
    frame(1, 4, 3 + 2 * n, b"\x82\x86\xbf\xbe") for n in range(100))  # fmt: skip


def start(all_servers, name, protocol, prefix=(), log=False, workers=1):
    port = servers.free_port()
    command = all_servers.command(name, port, workers, None, False, "", protocol, production=True)
    if log and name == "gatling":
        command.remove("-n")
    elif log:
        path = command[-1]
        path.write_text(path.read_text().replace("access_log off", "access_log /dev/null"))
    server = servers.Server(name, port, protocol, [*prefix, *command], set(all_servers.cores[:workers]), all_servers.directory)
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


def connecting(port, source):
    s = servers.bound_socket(source, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    s.connect_ex(("127.0.0.1", port))
    return s


def hold(port, until, source, number):
    """Holds connections, in its own process, so that it takes no time from the clients that are
    measured."""
    events, held = select.epoll(), {}
    while time.monotonic() < until:
        for _ in range(min(number - len(held), 100)):
            with contextlib.suppress(OSError):
                s = connecting(port, source)
                held[s.fileno()] = s
                events.register(s, select.EPOLLOUT)
        for fd, what in events.poll(0.05, 1000):
            with contextlib.suppress(OSError):
                if what == select.EPOLLOUT:
                    held[fd].send(b"GET / HTTP/1.1\r\nHost: a\r\nX")
                    events.modify(fd, select.EPOLLIN)
                    continue
            held.pop(fd).close()


async def request(reader, writer):
    writer.write(GET)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(1024)
    return head.startswith(b"HTTP/1.1 200")


async def newcomer(port):
    """Returns whether a new client is served in time."""
    try:
        async with asyncio.timeout(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            good = await request(reader, writer)
            writer.close()
            return good
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return False


async def regular(port, until):
    """Returns how often the server closes the connection of an active client."""
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


def held_now():
    """Returns the number of connections on this machine, where both ends of each are."""
    return int(Path("/proc/net/sockstat").read_text().split("TCP: inuse ")[1].split()[0]) // 2


async def attacked(port, held, seconds):
    until = time.monotonic() + seconds
    regulars = [asyncio.create_task(regular(port, until)) for _ in range(200)]
    await asyncio.sleep(1)
    with contextlib.ExitStack() as attack:
        for i, at in enumerate(range(0, held, HELD_MAX)):
            attack.enter_context(processes.forked(hold, port, until, f"127.0.0.{2 + i}", min(HELD_MAX, held - at)))
        await asyncio.sleep(seconds - 11)
        served, most = [], held_now()
        while time.monotonic() < until - 3:
            served.append(asyncio.create_task(newcomer(port)))
            await asyncio.sleep(0.05)
            most = max(most, held_now())
        served = await asyncio.gather(*served)
        cut = await asyncio.gather(*regulars)
    return {"connections": most, "new_served": f"{sum(served)} of {len(served)}", "regulars_cut": sum(cut)}


def full(all_servers, name, descriptors=DESCRIPTORS, workers=1, seconds=SECONDS):
    most, servers.CONNECTIONS_MAX = servers.CONNECTIONS_MAX, descriptors - 300
    limited = ["prlimit", f"--nofile={descriptors}:{descriptors}"]
    server = start(all_servers, name, "http", prefix=limited, workers=workers)
    found = asyncio.run(attacked(server.port, workers * descriptors + 500, seconds))
    servers.CONNECTIONS_MAX = most
    all_servers.stop(server)
    return found


def crowd(all_servers, name):
    return full(all_servers, name, descriptors=MANY, workers=2, seconds=2 * SECONDS)


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
                s.sendall(frame(6, 0, 0, b"12345678"))  # PING: the same worker, whatever the protocol costs
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
    threads = [threading.Thread(target=flood_with_references, args=(server.port, until, sent), daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    found = latencies(server.port, until)
    for thread in threads:
        thread.join()
    used = server.cpu_s() - before
    all_servers.stop(server)
    return {"mb_sent": sent[0] / 1e6, "ns_per_octet": used / sent[0] * 1e9, "p99_ms": found[len(found) * 99 // 100] * 1e3}


# --- unfinished requests ---


def settled(measure):
    """Returns the value of measure() when it hardly grows any more."""
    before, now = 0, measure()
    while now > before * SETTLED:
        time.sleep(0.5)
        before, now = now, measure()
    return now


def connected(server, count, data):
    """Returns count connections on which data was sent. Refused ones are tried again."""
    held, until = [], time.monotonic() + PATIENCE_S
    while len(held) < count and time.monotonic() < until:
        try:
            s = socket.create_connection(("127.0.0.1", server.port), 5)
            s.sendall(data)
            held.append(s)
        except OSError:
            time.sleep(0.01)
    return held


def still_open(held):
    """Returns how many of the connections the server has not closed."""
    poll = select.poll()
    for s in held:
        poll.register(s, select.POLLRDHUP)
    return len(held) - len(poll.poll(0))


def readers(all_servers, name):
    server = start(all_servers, name, "http")
    resident, kernel = server.resident(), servers.tcp_memory()
    held = connected(server, READERS, b"GET /10m HTTP/1.1\r\nHost: a\r\n\r\n")
    found = {"kernel_mb": (settled(servers.tcp_memory) - kernel) / 1e6, "memory_mb": (server.resident() - resident) / 1e6}
    found["connections"] = still_open(held)
    for s in held:
        s.close()
    all_servers.stop(server)
    return found


def client_hello():
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def handshakes(all_servers, name):
    server = start(all_servers, name, "https")
    before = server.resident()
    held = connected(server, HANDSHAKES, client_hello())
    found = {"memory_mb": (settled(server.resident) - before) / 1e6, "connections": still_open(held)}
    for s in held:
        s.close()
    time.sleep(3)
    found["left_mb"] = (server.resident() - before) / 1e6
    all_servers.stop(server)
    return found


if __name__ == "__main__":
    cases = {"memory": memory, "full": full, "crowd": crowd, "references": references_flood, "readers": readers, "handshakes": handshakes}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("case", nargs="*", metavar="CASE", help="default: all")
    chosen = parser.parse_args()
    for unknown in set(chosen.case) - set(cases):
        parser.error(f"'{unknown}' is none of {', '.join(cases)}")
    processes.end_on_signals()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # being ended by a signal is no error
    servers.raise_descriptor_limit()
    with servers.Servers(chosen.build) as running:
        running.add_file("1k", 1024)
        running.add_file("10m", 10 << 20)
        for case in (cases[name] for name in chosen.case or cases):
            for server_name in filter(servers.installed, NAMES):
                row = {key: f"{value:.1f}" if isinstance(value, float) else value for key, value in case(running, server_name).items()}
                print(f"{case.__name__:18}{server_name:10}" + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
