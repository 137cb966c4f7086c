"""Several machines, as the manual describes them: an address that moves with keepalived, and
content that rsync distributes."""

import contextlib
import ctypes
import os
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gatling import TIMEOUT, Connection, Root, Server, eventually, runnable

TOP = Path(__file__).resolve().parent.parent.parent
MANUAL = (TOP / "man/gatling-operate.7").read_text()
pytestmark = [pytest.mark.others, pytest.mark.skipif(os.geteuid() != 0, reason="takes network namespaces")]

# --- an address that moves ---

SHARED = "192.0.2.100"
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
C = ctypes.CDLL(None, use_errno=True)


class Machine:
    """A network namespace, with an interface eth0 on the bridge of another one."""

    def __init__(self, stack, switch=None, address=None):
        self.stack = stack
        self.holder = self._start(["unshare", "-n", "sleep", str(5 * TIMEOUT)])
        self.network = f"/proc/{self.holder.pid}/ns/net"
        eventually(lambda: os.readlink(self.network) != os.readlink("/proc/self/ns/net"))
        self.call("ip", "link", "set", "lo", "up")
        if switch:
            self.port = f"to-{address.rsplit('.', 1)[1]}"
            switch.call("ip", "link", "add", self.port, "up", "master", "br0", "type", "veth", "peer", "eth0", "netns", str(self.holder.pid))
            self.call("ip", "address", "add", f"{address}/24", "dev", "eth0")
            self.call("ip", "link", "set", "eth0", "up")
        else:
            self.call("ip", "link", "add", "br0", "up", "type", "bridge")

    def _start(self, command, **options):
        end_with_us = lambda: C.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        process = subprocess.Popen(command, preexec_fn=end_with_us, start_new_session=True, **options)
        self.stack.callback(self._end, process)
        return process

    @staticmethod
    def _end(process):
        """Ends a process with its children, such as those of keepalived."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def call(self, *command):
        subprocess.run(["nsenter", f"--net={self.network}", *command], check=True)

    def start(self, *command):
        return self._start(["nsenter", f"--net={self.network}", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def enter(self):
        """Moves the calling thread into the namespace."""
        with open(self.network, "rb") as network:
            assert C.setns(network.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


class Server80:
    """A machine with gatling on port 80 and keepalived, configured as in the manual."""

    def __init__(self, stack, switch, build, directory, number):
        self.machine = Machine(stack, switch, f"192.0.2.{number}")
        self.directory = path = directory / str(number)
        self.directory.mkdir()
        self.directory.chmod(0o755)
        (self.directory / "index.html").write_text(f"{number}")
        (self.directory / "index.html").chmod(0o644)
        self.build, self.name = build, str(number).encode()
        config = re.search(r"^(global_defs \{.*?\n\}\n)\.Ed", MANUAL, re.MULTILINE | re.DOTALL)[1]
        Path(f"{path}.conf").write_text(config.replace("priority 254", f"priority {255 - number}"))
        self.start()
        self.machine.start("/usr/sbin/keepalived", "-nlP", "-f", f"{path}.conf", "-p", f"{path}.pid", "-r", f"{path}.vrrp")

    def start(self):
        self.gatling = self.machine.start(runnable(self.build), "-n", "-j", "1", "--health", "/health", "--limit", "drain-delay=3", self.directory)


class Clients(threading.Thread):
    """Opens 200 connections a second to the shared address, and records when each ended, and who
    answered, or None."""

    def __init__(self, machine):
        super().__init__()
        self.machine, self.seen, self.stopping = machine, [], False
        self.start()

    def ask(self):
        begun, who = time.monotonic(), None
        with contextlib.suppress(OSError, AssertionError), Connection((SHARED, 80), timeout=1) as c:
            who = c.get("/").body
        self.seen.append((begun, time.monotonic(), who))

    def run(self):
        self.machine.enter()
        asking = []
        while not self.stopping:
            asking.append(threading.Thread(target=self.ask))  # which is in the same namespace
            asking[-1].start()
            time.sleep(1 / 200)
        for thread in asking:
            thread.join()

    def who(self):
        """Returns who answered last."""
        return next((who for _, _, who in reversed(self.seen) if who), None)

    def since(self, begun):
        """Returns how many requests there were since then, how many had no answer, and the longest
        time without one."""
        those = [(asked, ended, who) for asked, ended, who in list(self.seen) if asked >= begun]
        answered = sorted([begun, *(ended for _, ended, who in those if who)])
        pause = max((later - earlier for earlier, later in zip(answered, answered[1:])), default=0)
        return len(those), sum(who is None for _, _, who in those), pause


@pytest.mark.alone
def test_an_address_moves_when_a_server_fails_and_before_one_ends(plain, capsys):
    with contextlib.ExitStack() as stack:
        root = Root()
        stack.callback(root.remove)
        switch = Machine(stack)
        one, two = (Server80(stack, switch, plain, root.path, number) for number in (1, 2))
        clients = Clients(Machine(stack, switch, "192.0.2.9"))
        stack.callback(clients.join)
        stack.callback(setattr, clients, "stopping", True)
        first = one if eventually(clients.who) == one.name else two
        other = two if first is one else one

        def moves(what, event, to, lost_most, pause_most):
            begun = time.monotonic()
            event()
            eventually(lambda: clients.who() == to.name)
            time.sleep(1.5)  # what was asked meanwhile is answered or lost by now
            asked, lost, pause = clients.since(begun)
            with capsys.disabled():
                print(f"\n{what}: {lost} of {asked} new connections lost, none answered for {pause:.2f} s")
            assert lost <= lost_most * asked and pause <= pause_most

        moves("gatling killed", first.gatling.kill, other, 0.5, 3)
        first.start()
        time.sleep(3)  # until its health is known
        moves("gatling told to end", other.gatling.terminate, first, 0.02, 0.5)
        other.gatling.wait(TIMEOUT)
        other.start()
        time.sleep(3)
        moves("unplugged", lambda: switch.call("ip", "link", "set", first.machine.port, "down"), other, 0.7, 3)


# --- content ---

UPDATES = 1000
SIZES = {"page.html": 700, "app.js": 20_000, "data.json": 200_000, "large.bin": 3_000_000}


def content(version, size):
    """Returns content that is of one version throughout, and whose length depends on the
    version."""
    return (b"%08d" % version) * (size // 8 + version % 7)


@pytest.mark.timeout(300)
def test_no_answer_mixes_two_versions_of_a_file(first_build, tmp_path):
    root = Root()
    source = tmp_path / "site"
    source.mkdir()
    wrong, answers, stopping = [], {name: 0 for name in SIZES}, threading.Event()

    def publish(version):
        for name, size in SIZES.items():
            if version % 25 == 0 or name != "large.bin":
                (source / name).write_bytes(content(version, size))
        command = re.search(r"^\.Dl (rsync .*) site/ one:/srv/www/$", MANUAL, re.MULTILINE)[1]
        subprocess.run([*command.split(), f"{source}/", f"{root.path}/"], check=True)

    def check(name, response):
        body = response.body
        assert response.status == 200
        assert body == content(int(body[:8]), SIZES[name]), (name, sorted({body[i : i + 8] for i in range(0, len(body), 8)}))

    def ask():
        try:
            with server.connect() as c:
                while not stopping.is_set():
                    name = random.choice(list(SIZES))
                    check(name, c.get(f"/{name}"))  # which is complete, or an error
                    answers[name] += 1
        except (AssertionError, OSError, ValueError) as error:
            wrong.append(error)

    publish(0)
    with Server(first_build, root, "-j", "2", "-n") as server:
        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        for version in range(1, UPDATES + 1):
            publish(version)
        time.sleep(1.1)  # a change is noticed within a second
        stopping.set()
        for client in clients:
            client.join()
        assert not wrong
        assert min(answers.values()) > 100
        for name in ("page.html", "app.js", "data.json"):
            assert server.get(f"/{name}").body == content(UPDATES, SIZES[name])
    root.remove()
