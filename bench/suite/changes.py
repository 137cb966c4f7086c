"""Finds where the level of a series of measurements changes.

E-divisive: Matteson and James, "A nonparametric approach for multiple change point analysis of
multivariate data", Journal of the American Statistical Association 109 (2014). MongoDB watches its
performance with it (Daly et al., "The use of change point detection to identify software
performance regressions", ICPE 2020). Here it is used for one variable, and by bisection: a segment
is split where the energy distance of its parts is greatest, if that is significant among
permutations of the segment. So a series without a change is split with a probability of at most
LEVEL, whatever its distribution. The number of permutations is decided on the way (Besag and
Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991).
"""

import math

import numpy as np

LEVEL = 0.05
SEGMENT_MIN = 3  # measurements: a single outlier is not a change
PERMUTATIONS = 40  # this many would exceed it by chance, at the level
CERTAIN = 3  # standard deviations of a count: it is certainly above what the level allows
ROUNDING = 1e-9  # the same parts in another order
SEED = 1


def split(values):
    """Returns the greatest energy distance of two parts of a segment, weighted by their sizes, and
    where the second part begins, or 0, None if the segment is too short."""
    n = len(values)
    if n < 2 * SEGMENT_MIN:
        return 0.0, None
    sums = np.abs(values[:, None] - values).cumsum(0).cumsum(1)  # of all pairs up to there
    at = np.arange(SEGMENT_MIN, n - SEGMENT_MIN + 1)
    first = sums[at - 1, at - 1]
    both = sums[at - 1, n - 1] - first
    second = sums[n - 1, n - 1] - first - 2 * both
    rest = n - at
    between = 2 * both / (at * rest) - first / (at * (at - 1)) - second / (rest * (rest - 1))
    distance = between * at * rest / n
    best = int(np.argmax(distance))
    return float(distance[best]), int(at[best])


def significance(values, distance, level, rng):
    """Returns the p-value of a distance among permutations. Stops early when it is certainly above
    the level."""
    exceeded, shuffled = 0, values.copy()
    most = int(PERMUTATIONS / level)
    for tried in range(1, most + 1):
        rng.shuffle(shuffled)
        exceeded += split(shuffled)[0] >= distance * (1 - ROUNDING)
        if exceeded - CERTAIN * math.sqrt(exceeded) > level * tried:
            return exceeded / tried
    return (exceeded + 1) / (most + 1)


def results_needed(level):
    """Returns how long a series must be for its greatest change to be significant at the level, if
    all measurements after it differ from all before. Of the permutations, only those that put the
    two parts apart again, in either order, are then as extreme; they are the fewest if the change
    is in the middle."""
    n = 2 * SEGMENT_MIN
    while 2 / math.comb(n, n // 2) > level:
        n += 1
    return n


def change_points(values, level=LEVEL):
    """Returns [(index, p)] in order: at index, the level differs from that before. level: the
    probability of finding a change where there is none; divide it by the number of series that are
    tested (Bonferroni)."""
    values, rng = np.asarray(values, dtype=float), np.random.default_rng(SEED)
    found, segments = [], [(0, len(values))]
    while segments:
        first, last = segments.pop()
        distance, at = split(values[first:last])
        if not at or distance <= 0:
            continue
        p = significance(values[first:last], distance, level, rng)
        if p <= level:
            found.append((first + at, p))
            segments += [(first, first + at), (first + at, last)]
    return sorted(found)
