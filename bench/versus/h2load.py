"""Translates the output of h2load, a load generator for HTTP/2, into the terms of httpbench."""

import math
import re

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1}


class NotUnderstood(Exception):
    pass


def percentile_us(sorted_us, percent):
    return sorted_us[max(0, math.ceil(len(sorted_us) * percent / 100) - 1)] if sorted_us else math.nan


def measured(text, log, length):
    """Returns the results. text: its output; log: that of --log-file; length: of each answer.
    Partial answers count by their bytes, since a run of fixed duration cuts some off, and there are
    few answers of 10 MB."""

    def found(pattern):
        match = re.search(pattern, text, re.MULTILINE)
        if not match:
            raise NotUnderstood(f"h2load does not say {pattern}: {text}")
        return match

    elapsed = found(r"^finished in ([\d.]+)(us|ms|s),")
    done, failed = map(int, found(r"^requests: .* (\d+) done, .* (\d+) failed,").groups())
    elsewhere = int(found(r"^status codes: .* (\d+) 3xx,").group(1))  # 4xx and 5xx are among the failed ones
    data = int(found(r"^traffic: .* headers .* \((\d+)\) data$").group(1))
    words = log.split()
    durations_us = sorted(int(us) for status, us in zip(words[1::3], words[2::3]) if status == "200")
    failed += elsewhere + (data < (done - failed) * length)
    return {
        "answered": data / length,
        "elapsed_s": float(elapsed[1]) * UNITS_S[elapsed[2]],
        "percentiles_us": [percentile_us(durations_us, percent) for percent in (50, 99, 99.9)],
        "failed": failed,
        "protocol": found(r"^Application protocol: (\S+)$").group(1),
        "tls": " ".join(re.findall(r"^(?:TLS Protocol|Cipher): (\S+)$", text, re.MULTILINE)),
    }
