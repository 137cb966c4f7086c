"""The HdrHistogram package's view of a log; run by an interpreter that has it.

hdr.py write FILE SEED SAMPLES    a log of one second, as httpbench writes them
hdr.py read FILE...               JSON of what the histograms of all files together say, by tag
"""

import json
import random
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

HOUR = 3_600_000_000_000
PERCENTILES = (50, 75, 90, 99, 99.9, 99.99, 100)


def empty():
    return HdrHistogram(1, HOUR, 3)


def write(path, seed, samples):
    random.seed(seed)
    histogram = empty()
    for _ in range(samples):
        histogram.record_value(int(10 ** random.uniform(0, 12.5)))
    with open(path, "w", encoding="ascii") as out:
        out.write("#[StartTime: 1700000000.000 (seconds since epoch), then]\n")
        out.write(f"Tag=whole,0.000,1.000,1.000,{histogram.encode().decode()}\n")
        out.write(f"#[Run: elapsed_s 1.0 answered {samples} ]\n")


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
            "percentiles_ns": {f"{p:g}": h.get_value_at_percentile(p) for p in PERCENTILES},
        }
        for tag, h in together.items()
    }


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3], int(sys.argv[4]))
else:
    print(json.dumps(read(sys.argv[2:])))
