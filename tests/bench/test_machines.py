"""Load generators on several machines, which are network namespaces here, each with its own
addresses and ports."""

import contextlib
import json
import math
import os
import re
import subprocess
import time

import pytest

from gatling import Root
from running import httpbench

SERVER = "10.177.0.1"
CLIENTS = 2


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Machines:
    """A server's namespace, and those of clients, each connected to it by a pair of interfaces."""

    def __init__(self):
        self.server = f"gatling-{os.getpid()}"
        self.clients = [f"{self.server}-{i}" for i in range(CLIENTS)]
        self.made = []

    def __enter__(self):
        try:
            self._make(self.server)
            ip("-n", self.server, "address", "add", f"{SERVER}/32", "dev", "lo")
            for i, client in enumerate(self.clients):
                self._make(client)
                ip("link", "add", f"g{i}", "netns", self.server, "type", "veth", "peer", "name", "eth0", "netns", client)
                for name, interface, address in ((self.server, f"g{i}", 1), (client, "eth0", 2)):
                    ip("-n", name, "address", "add", f"10.177.{i + 1}.{address}/24", "dev", interface)
                    ip("-n", name, "link", "set", interface, "up")
                ip("-n", client, "route", "add", SERVER, "via", f"10.177.{i + 1}.1")
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            pytest.skip(f"no network namespaces: {getattr(error, 'stderr', error)}")
        return self

    def _make(self, name):
        ip("netns", "add", name)
        self.made.append(name)
        ip("-n", name, "link", "set", "lo", "up")

    def __exit__(self, *_):
        for name in self.made:
            ip("netns", "delete", name)

    @staticmethod
    def start(machine, *command):
        return subprocess.Popen(["ip", "netns", "exec", machine, *map(str, command)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)  # fmt: skip


@contextlib.contextmanager
def serving(machines, machine, plain, address):
    """Runs gatling on a machine. Yields the URL of a file of 1 KB."""
    root = Root({"k": b"x" * 1024})
    server = machines.start(machine, plain / "gatling", "-c", root.path, "-i", address, "-p", "0", "-n")
    try:
        line = next(line for line in server.stderr if "gatling: serving" in line)
        yield f"http://{address}:{re.search(r':([0-9]+)/', line).group(1)}/k"
    finally:
        server.terminate()
        server.communicate()
        root.remove()


@pytest.fixture
def machines():
    with Machines() as m:
        yield m


def test_more_connections_than_ports(plain, tmp_path, machines):
    client = machines.clients[0]
    subprocess.run(["ip", "netns", "exec", client, "sh", "-c", "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range"],
                   check=True)  # fmt: skip
    with serving(machines, client, plain, "127.0.0.1") as url:
        process = machines.start(client, plain / "bench" / "httpbench", "-c", 20, "-d", 1, "--json", tmp_path / "json", url)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and re.search(r"^verdict +LIMIT: ports ran out$", output, re.MULTILINE)
    # one of the ten is the server's own
    assert errors == "httpbench: no port was left after 9 connections: --source 127.0.1.0/24 adds addresses\n"
    result = json.loads((tmp_path / "json").read_text())
    assert result["answered"] > 10 and result["failed"]["no_port"] > 0 and result["connected"] == 9


def test_machines_load_a_server_together(plain, tmp_path, machines):
    with serving(machines, machines.server, plain, SERVER) as url:
        start = math.ceil(time.time()) + 1
        running = [
            machines.start(client, plain / "bench" / "httpbench", "--ranks", CLIENTS, "--rank", rank, "-R", 400, "--arrival",
                           "constant", "-d", 2, "--start-at", start, "--hlog", tmp_path / f"{rank}.hlog", url)
            for rank, client in enumerate(machines.clients)
        ]  # fmt: skip
        for process in running:
            output = "".join(process.communicate(timeout=60))
            assert process.returncode == 0, output
    done = httpbench(plain, "merge", "--json", tmp_path / "json", tmp_path / "0.hlog", tmp_path / "1.hlog")
    assert json.loads((tmp_path / "json").read_text())["answered"] == 800
    together = re.search(r"^together   for (\S+) s of (\S+) s, (\d+) a second$", done.stdout, re.MULTILINE)
    assert float(together.group(1)) > 1.8 and abs(int(together.group(3)) - 400) < 20
