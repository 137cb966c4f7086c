"""Says how often httpbench compare is wrong: about pairs of runs whose truth is known, as simulate.c makes them.

    calibration.py BUILD [--pairs N] [--seconds N] [--rate N]

In the first half of the rows nothing differs, and each "yes" is false; at a confidence of 95 % there may be one in twenty. In the
others the second run takes 1.2 times as long, and "no" is false. "open": compare says that it cannot tell. "make
bench-accuracy".
"""

import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from processes import end_on_signals

LAWS = ("steady", "drifting", "bursty", "heavy")
CONDITIONS = ("p50>0%", "p99>0%")
SLOWER = 1.2
CONFIDENCE = "95"


def simulated(build, path, law, seed, seconds, rate, factor):
    with open(path, "wb") as log:
        subprocess.run([build / "bench" / "simulate", law, str(seed), str(seconds), str(rate), str(factor)], stdout=log, check=True)


def answers(build, law, pair, seconds, rate, factor):
    """Returns {condition: "yes", "no" or "open"} for one pair."""
    with tempfile.TemporaryDirectory() as directory:
        logs = [Path(directory) / name for name in ("A", "B")]
        for number, (log, times) in enumerate(zip(logs, (1, factor))):
            simulated(build, log, law, 2 * pair + number, seconds, rate, times)
        said = {}
        for condition in CONDITIONS:
            done = subprocess.run([build / "bench" / "httpbench", "compare", "--confidence", CONFIDENCE, "--fail", condition, *logs],
                                  stdout=subprocess.PIPE, text=True, check=False)  # fmt: skip
            said[condition] = {0: "no", 1: "yes", 2: "open"}[done.returncode]
        return said


def calibrate(build, pairs, seconds, rate, laws=LAWS, factors=(1, SLOWER)):
    """Yields (law, factor, condition, {answer: count})."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for factor in factors:
            for law in laws:
                found = list(pool.map(lambda pair: answers(build, law, pair, seconds, rate, factor), range(pairs)))
                for condition in CONDITIONS:
                    yield law, factor, condition, collections.Counter(said[condition] for said in found)


def main():
    parser = argparse.ArgumentParser(description="How often httpbench compare is wrong.")
    parser.add_argument("build", type=Path)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=400)
    arguments = parser.parse_args()
    end_on_signals()
    print(f"# {arguments.pairs} pairs of {arguments.seconds} s, {arguments.rate} requests a second; confidence {CONFIDENCE} %")
    print(f"{'law':10} {'B/A':>4} {'condition':10} {'yes':>7} {'no':>7} {'open':>7}")
    for law, factor, condition, count in calibrate(arguments.build, arguments.pairs, arguments.seconds, arguments.rate):
        print(f"{law:10} {factor:4} {condition:10} " + " ".join(f"{count[a] / arguments.pairs:7.1%}" for a in ("yes", "no", "open")), flush=True)


if __name__ == "__main__":
    main()
