"""The HdrHistogram package's view of a log; run by an interpreter that has it.

hdr.py write FILE SEED SAMPLES    a log of one second, as httpbench writes them
hdr.py drift FILE SEED SECONDS SAMPLES FACTOR FAILED
                                  a log of SECONDS, with so many SAMPLES of about FACTOR ms each, which drift, and
                                  FAILED of a timeout
hdr.py queue FILE SEED SECONDS RATE CAPACITY
                                  a log of SECONDS of a queue: RATE requests a second come at random, CAPACITY are served
hdr.py read FILE...               JSON of what the histograms of all files together say, by tag
"""

import json
import math
import random
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

HOUR = 3_600_000_000_000
PERCENTILES = (50, 75, 90, 95, 99, 99.9, 99.99, 100)


def empty():
    return HdrHistogram(1, HOUR, 3)


def percentile(histogram, percent):
    """Returns the value that at least this percentage of the samples does not exceed; the package
    rounds to the nearest sample."""
    rank = math.ceil(round(percent * histogram.total_count / 100, 6))
    return histogram.get_value_at_percentile(100 * rank / histogram.total_count)


def write(path, seed, samples):
    random.seed(seed)
    histogram = empty()
    for _ in range(samples):
        histogram.record_value(int(10 ** random.uniform(0, 12.5)))
    with open(path, "w", encoding="ascii") as out:
        out.write("#[StartTime: 1700000000.000 (seconds since epoch), then]\n")
        out.write(f"Tag=whole,0.000,1.000,1.000,{histogram.encode().decode()}\n")
        out.write(f"#[Run: elapsed_s 1.0 answered {samples} ]\n")


def drift(path, seed, seconds, samples, factor, failed):
    random.seed(seed)
    level = 0
    with open(path, "w", encoding="ascii") as out:
        out.write("#[StartTime: 1700000000.000 (seconds since epoch), then]\n")
        out.write(f"#[Plan: version 1 url http://a/{factor} urls 1 timeout_s 10.000 ranks 1 ]\n")
        for second in range(seconds):
            level = 0.6 * level + random.gauss(0, 0.03)
            histogram = empty()
            for _ in range(samples):
                histogram.record_value(int(factor * 1e6 * math.exp(level + random.gauss(0, 0.5))))
            out.write(f"Tag=whole,{second}.000,1.000,1.000,{histogram.encode().decode()}\n")
            if failed:
                timeouts = empty()
                timeouts.record_value(10_000_000_000, failed)
                out.write(f"Tag=failed_whole,{second}.000,1.000,1.000,{timeouts.encode().decode()}\n")
        out.write(f"#[Run: elapsed_s {seconds}.0 answered {samples * seconds} ]\n#[Failed: timed_out {failed * seconds} ]\n")


def read(paths):
    together = {}
    for path in paths:
        log = HistogramLogReader(path, empty())
        while (histogram := log.get_next_interval_histogram()) is not None:
            together.setdefault(histogram.get_tag(), empty()).add(histogram)
    return {
        tag: {
            "samples": h.total_count,
            "mean_ns": h.get_mean_value(),
            "deviation_ns": h.get_stddev(),
            "percentiles_ns": {f"{p:g}": percentile(h, p) for p in PERCENTILES},
        }
        for tag, h in together.items()
    }


def queue(path, seed, seconds, rate, capacity):
    random.seed(seed)
    intervals, now, free = [empty() for _ in range(seconds)], 0.0, 0.0
    late, samples, end = 0, 0, 0.0
    while (now := now + random.expovariate(rate)) < seconds:
        free = max(now, free) + 1 / capacity
        intervals[min(int(free), seconds - 1)].record_value(int((free - now) * 1e9))
        samples, late, end = samples + 1, late + (free > seconds), free
    with open(path, "w", encoding="ascii") as out:
        out.write("#[StartTime: 1700000000.000 (seconds since epoch), then]\n")
        out.write(f"#[Plan: version 1 url http://a/ urls 1 rate {rate} timeout_s 10.000 ranks 1 ]\n")
        for second, histogram in enumerate(intervals):
            out.write(f"Tag=whole,{second}.000,1.000,1.000,{histogram.encode().decode()}\n")
        out.write(f"#[Run: elapsed_s {seconds}.0 after_s {max(0.0, end - seconds):.6f} answered {samples} late {late} ]\n")


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3], int(sys.argv[4]))
elif sys.argv[1] == "drift":
    drift(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6]), int(sys.argv[7]))
elif sys.argv[1] == "queue":
    queue(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:7]))
else:
    print(json.dumps(read(sys.argv[2:])))
