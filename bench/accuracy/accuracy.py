"""Compares what load generators say about a server with the truth, which is known: that server
(tests/bench/truth.c) takes the time that it is told to take.

    accuracy.py BUILD [--seconds N] [--only CASE,...] [--loads quiet,busy]

The generators are httpbench, vegeta, and oha with --latency-correction, which corrects coordinated
omission as wrk2 does. Each measures each case twice: on a quiet machine, and beside BUSY processes
that compute. A figure is right if it is within TOLERANCE of the truth, or within NEAR_MS. One that is
not is a lie, unless the generator says that its result is not valid. Beside busy processes the server
is late as well: what it takes is then longer than it should be, and there is nothing to be right
about, so a result has to be said to be invalid. "make bench-accuracy".
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from processes import Process, end_on_signals, run

TOLERANCE, NEAR_MS = 0.10, 0.5  # a process that sleeps wakes up a little later, which is part of what the server takes
BUSY = 8
CONNECTIONS = 128
VALID = ("PASS", "XPASS")


@dataclass
class Case:
    """options: of the server; rate: requests a second that are due, 0: closed loop with that many connections; truth: {figure:
    value}, in ms, a second, or per cent. invalid: no figure is right, since the server is overloaded."""

    name: str
    options: list
    rate: int
    truth: dict
    connections: int = CONNECTIONS
    invalid: bool = False


CASES = [
    Case("constant", ["--service", 20000], 400, {"p50": 20, "p99": 20}),
    Case("two durations", ["--service", 10000, "--slow", 20, 100000], 400, {"p50": 10, "p90": 10, "p99": 100}),
    # of the requests 10 % wait, for 0 to 200 ms alike: 1 % for longer than 180
    Case("stalls", ["--stall", 2_000_000, 200_000], 400, {"p50": 0, "p99": 180}),
    Case("closed loop", ["--service", 20000], 0, {"p50": 20, "p99": 20, "rate": 800}, connections=16),
    Case("failures", ["--service", 10000, "--fail", 20], 400, {"p50": 10, "failed": 5}),
    Case("overload", ["--rate", 390], 400, {}, invalid=True),
]


@dataclass
class Said:
    """What a generator says: figures as those of a case; valid: it does not say that the result is invalid."""

    figures: dict = field(default_factory=dict)
    valid: bool = True
    words: str = ""


def httpbench(build, case, url, seconds):
    loop = ["-R", case.rate, "-t", 2] if case.rate else []
    done = run([build / "bench" / "httpbench", "-c", case.connections, *loop, "-d", seconds, "--json", "-", url],
               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    said = json.loads(done.stdout)
    percentiles = said["durations"]["whole"]["percentiles_ns"]
    failed = sum(said["failed"].values())
    figures = {f"p{p}": percentiles[p] / 1e6 if percentiles[p] is not None else float("inf") for p in ("50", "90", "99")}
    figures |= {"rate": said["answered_per_s"], "failed": 100 * failed / (failed + said["answered"])}
    right = said["verdict"] in VALID or (said["verdict"] == "FAILED" and "failed" in case.truth)
    return Said(figures, right, said["verdict"])


def vegeta(_, case, url, seconds):
    loop = ["-rate", f"{case.rate}/s"] if case.rate else ["-rate", "0", "-max-workers", str(case.connections)]
    with tempfile.TemporaryFile() as target, tempfile.TemporaryFile() as results:
        target.write(f"GET {url}\n".encode())
        target.seek(0)
        run(["vegeta", "attack", *loop, "-duration", f"{seconds}s", "-connections", str(case.connections)], stdin=target, stdout=results)
        results.seek(0)
        said = json.loads(run(["vegeta", "report", "-type=json"], stdin=results, stdout=subprocess.PIPE).stdout)
    figures = {name: said["latencies"][key] / 1e6 for name, key in (("p50", "50th"), ("p90", "90th"), ("p99", "99th"))}
    return Said(figures | {"rate": said["rate"], "failed": 100 * (1 - said["success"])})


def oha(_, case, url, seconds):
    loop = ["-q", str(case.rate), "--latency-correction"] if case.rate else []
    done = run(["oha", "--no-tui", "--output-format", "json", "-c", str(case.connections), "-z", f"{seconds}s", *loop, url],
               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    said = json.loads(done.stdout)
    statuses = said["statusCodeDistribution"]
    failed = sum(count for status, count in statuses.items() if status != "200") + sum(
        count for error, count in said["errorDistribution"].items() if "deadline" not in error)  # fmt: skip
    figures = {p: 1e3 * said["latencyPercentiles"][p] for p in ("p50", "p90", "p99")}
    return Said(figures | {"rate": said["summary"]["requestsPerSec"], "failed": 100 * failed / max(1, sum(statuses.values()))})


GENERATORS = {"httpbench": httpbench, "vegeta": vegeta, "oha": oha}


def wrong(case, said):
    """Returns the figures that are not right."""
    return [name for name, true in case.truth.items()
            if abs(said.figures[name] - true) > max(TOLERANCE * true, 0 if name in ("rate", "failed") else NEAR_MS)]  # fmt: skip


def judged(case, said):
    """Returns "right", "said" (that it is invalid), or "wrong"."""
    if not said.valid:
        return "said"
    return "wrong" if case.invalid or wrong(case, said) else "right"


def figure(name, value):
    unit = {"rate": "/s", "failed": " %"}.get(name, "")
    return f"{value:.0f}{unit}" if name == "rate" else f"{value:.3g}{unit}"


def row(case, said):
    """Returns what a generator says of a case, in words."""
    bad = wrong(case, said)
    words = ", ".join(f"{name} {figure(name, said.figures[name])}{' (!)' if name in bad else ''}" for name in case.truth or ("p50", "p99"))
    return f"{words}{f'; {said.words}' if said.words else ''}"


@contextlib.contextmanager
def busy(load):
    """Runs BUSY processes that compute beside the block, if the load is "busy"."""
    with contextlib.ExitStack() as stack:
        for _ in range(BUSY if load == "busy" else 0):
            stack.enter_context(Process(["sh", "-c", "while :; do :; done"]))
        yield


@contextlib.contextmanager
def truth(build, case):
    with Process([build / "bench" / "truth", *case.options], stdout=subprocess.PIPE, text=True) as server:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/"


def compare(build, cases, loads, generators, seconds):
    """Prints what each generator says in each case. Returns {(load, generator): {judgement: count}}."""
    count = {}
    for load in loads:
        for case in cases:
            expected = ", ".join(f"{name} {figure(name, value)}" for name, value in case.truth.items()) or "invalid: it is overloaded"
            print(f"{load:6} {case.name:14} {'truth':10}        {expected}")
            for name in generators:
                with busy(load), truth(build, case) as url:
                    said = GENERATORS[name](build, case, url, seconds)
                judgement = judged(case, said)
                count.setdefault((load, name), dict.fromkeys(("right", "said", "wrong"), 0))[judgement] += 1
                print(f"{'':21} {name:10} {judgement:6} {row(case, said)}", flush=True)
    return count


def main():
    parser = argparse.ArgumentParser(description="What load generators say about a server whose truth is known.")
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--only", default=",".join(case.name for case in CASES))
    parser.add_argument("--loads", default="quiet,busy")
    arguments = parser.parse_args()
    end_on_signals()
    generators = [name for name in GENERATORS if name == "httpbench" or shutil.which(name)]
    cases = [case for case in CASES if case.name in arguments.only.split(",")]
    print(f"# {arguments.seconds} s each, {CONNECTIONS} connections at most; ms; (!): off by more than {TOLERANCE:.0%} and {NEAR_MS} ms")
    count = compare(arguments.build, cases, arguments.loads.split(","), generators, arguments.seconds)
    print(f"\n{'':6} {'':10} {'right':>6} {'said':>6} {'wrong':>6}")
    for (load, name), judgements in count.items():
        print(f"{load:6} {name:10} {judgements['right']:6} {judgements['said']:6} {judgements['wrong']:6}")


if __name__ == "__main__":
    main()
