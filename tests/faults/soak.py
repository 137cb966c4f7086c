"""Loads a server for half an hour with everything that may come, and tests whether it holds more at
the end than soon after the start:

    python3 tests/faults/soak.py build [--minutes N]

First, a client makes all kinds of requests (mix.py) while files and rules change, and requests
files that fill the cache. Then visitors make requests at a steady rate (httpbench), five on each
connection. Meanwhile calls of the server fail, one after the other, while a client requests
everything and all of it changes, and connections with mistakes in their bytes come and vanish
(mutations.py). Every SAMPLE_S all of this stops, everything is requested once more, so that the
caches are as full as before, and when no client is connected, the resident memory and the
descriptors are counted, without the bytes that malloc(3) keeps and nothing is in. These are what
was used at the same time at some moment, by TLS handshakes or while files were compressed, and are
given back or not as a block in use happens to lie behind them. They may be UNUSED times the rest.
"""

import argparse
import collections
import contextlib
import http.client
import itertools
import random
import subprocess
import sys
import time
from pathlib import Path

from faults import ALWAYS_PATIENCE_S, PATIENCE_S, Faulty, plan
from mix import RIGHT
from mutations import PAGE, TOGETHER, Finding, Mutations

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
from processes import Process, end_on_signals  # noqa: E402

FILL_S, SAMPLE_S = 60, 180
RATE = 200  # requests a second of the visitors
GROWTH, UNUSED = 1.02, 0.5
SEED = 17
FILLERS, FILLER_BYTES = 3000, 4000  # more than fit into the cache


class Soak:
    def __init__(self, build):
        self.build, self.faulty = build, Faulty(build)
        self.server = self.faulty.server
        self.faulty.root.write("page.html", PAGE)
        for n in range(FILLERS):
            self.faulty.root.write(f"filler{n}.bin", bytes(FILLER_BYTES))
        self.mutations, self.sent = Mutations(self.server), 0
        self.places, self.faults, self.tried = itertools.cycle(self.faulty.places), [], 0
        self.last = collections.deque(maxlen=10)
        self.chance = random.Random(SEED)

    def visitors(self):
        url = f"http://127.0.0.1:{self.server.plain_port}/page.html"
        command = [self.build / "bench/httpbench", "-R", RATE, "-k", 5, "-c", 64, "-d", 2 * SAMPLE_S, url]
        return Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fail(self):
        """Makes a call fail while a client requests everything."""
        if not self.faults:
            self.faulty.forget_calls()
            self.ask(next(self.places))
            self.faults = plan(self.faulty.calls())
            self.chance.shuffle(self.faults)
        fault, place = self.faults.pop(), next(self.places)
        self.last.append(fault)
        place.change()
        self.faulty.arm(fault)
        self.faulty.mix.ask(place, ALWAYS_PATIENCE_S if fault.error else PATIENCE_S)
        self.tried += self.faulty.disarm() > 0
        if not Path(f"/proc/{self.server.pid}").exists():  # another one may have taken over
            self.give_up("the server has ended")

    def ask(self, place):
        place.change()
        for request, verdict, answer in self.faulty.mix.ask(place, PATIENCE_S):
            if verdict != RIGHT:
                self.give_up(f"{verdict}: {request}: {answer}")

    def give_up(self, what):
        last = [f"after the fault {fault}" for fault in self.last]
        sys.exit("\n".join([f"soak: {what}", *last, *self.server.errors[-20:]]))

    def fill(self, until):
        self.fill_cache()
        while time.monotonic() < until:
            self.ask(next(self.places))

    def fill_cache(self):
        """Requests each of the files three times, since a full cache keeps a file only if it is
        requested again, and keeps that rather than what it has kept for long only after a third
        request: with two, entries of rules that have changed since would stay."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.plain_port, timeout=PATIENCE_S)) as client:
            for n in range(FILLERS):
                for _ in range(3):
                    client.request("GET", f"/filler{n}.bin")
                    if len(client.getresponse().read()) != FILLER_BYTES:
                        self.give_up(f"filler{n}.bin")

    def load(self, until):
        """Applies all of the load until the time."""
        with self.visitors():
            while time.monotonic() < until:
                self.fail()
                self.mutate()
        self.mutations.look()

    def mutate(self):
        try:
            self.mutations.send_together(SEED, range(self.sent, self.sent + TOGETHER))
        except (OSError, Finding) as error:
            self.give_up(f"connections {self.sent} to {self.sent + TOGETHER - 1}: {error!r}")
        self.sent += TOGETHER

    def sample(self):
        """Returns, when nobody is connected, the resident bytes without the unused ones; the
        descriptors, without the files that the cache keeps open: these are the last ones, or none,
        by chance; and the unused bytes."""
        until = time.monotonic() + PATIENCE_S
        while self.mutations.connected() and time.monotonic() < until:
            time.sleep(0.1)
        for place in self.faulty.places:
            self.ask(place)
        self.fill_cache()
        time.sleep(5)  # connections to the upstream are closed by then, and memory is given back
        resident, descriptors = self.server.resident(), self.server.descriptors(cached=False)
        unused = self.faulty.unused()
        return resident - unused, descriptors, unused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    arguments = parser.parse_args()
    end_on_signals()
    soak, begun, samples = Soak(arguments.build.resolve()), time.monotonic(), []
    with contextlib.ExitStack() as stack:
        stack.callback(soak.faulty.end)
        soak.fill(begun + FILL_S)
        while not samples or time.monotonic() - begun < arguments.minutes * 60:
            soak.load(begun + min((len(samples) + 1) * SAMPLE_S, arguments.minutes * 60))
            samples.append(soak.sample())
            memory, descriptors, unused = samples[-1]
            print(f"{(time.monotonic() - begun) / 60:5.1f} minutes: {memory / 1e6:.2f} MB used, {unused / 1e6:.2f} MB unused, "
                  f"{descriptors} descriptors; {soak.tried} faults met, {soak.sent} connections with mistakes", flush=True)  # fmt: skip
    memory, descriptors = (samples[-1][i] / samples[0][i] for i in range(2))
    print(f"at the end {memory:.3f} times the memory and {descriptors:.3f} times the descriptors of the first sample")
    sys.exit(memory > GROWTH or descriptors > GROWTH or any(unused > UNUSED * used for used, _, unused in samples))


if __name__ == "__main__":
    main()
