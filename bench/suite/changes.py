"""Finds where the level of a series of measurements changes.

By bisection: of all parts of a segment, one at its beginning or end, or one inside it, between two changes (circular binary
segmentation: Olshen, Venkatraman, Lucito and Wigler, "Circular binary segmentation for the analysis of array-based DNA copy
number data", Biostatistics 5, 2004), that is taken whose mean is farthest from that of the rest, for its length, if this is
significant among permutations of the segment. So a series without a change is split with a probability of at most LEVEL,
whatever its distribution. The number of permutations is decided on the way (Besag and Clifford, "Sequential Monte Carlo
p-values", Biometrika 78, 1991).

That holds for measurements that do not depend on each other. If neighbours are alike, the mean of a part varies more, by a
first-order autoregression (1 + r) / (1 - r) times; the distance is less by its root. r is that of what the best fit leaves,
and corrected for its bias (Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954).
"""

import functools
import math

import numpy as np
import scipy

LEVEL = 0.05
SEGMENT_MIN = 3  # measurements: a single outlier is not a change
ENDS_SHARE, INSIDE_SHARE, DRIFT_SHARE = 0.7, 0.15, 0.15  # of the level: for parts at the beginning or end, those inside, and drifts
PERMUTATIONS = 40  # this many would exceed it by chance, at the level
CERTAIN = 3  # standard deviations of a count: it is certainly above what the level allows
ALIKE, ALIKE_MAX = 0.5, 0.9  # r that counts, in its standard deviations without correlation (1 / sqrt(n)); and the most
BATCH = 1_000_000  # distances that are calculated at a time
ROUNDING = 1e-9  # the same parts in another order
SEED = 1


@functools.lru_cache
def parts(n):
    """Returns the parts of a segment of n measurements, those at its ends and those inside: where they begin and end, and the
    factors of their distances."""
    first, last = np.triu_indices(n + 1, 1)
    size = last - first
    long = (size >= SEGMENT_MIN) & (n - size >= SEGMENT_MIN)
    found = []
    for kept in (long & (first == 0), long & (first >= SEGMENT_MIN) & (n - last >= SEGMENT_MIN)):
        found.append((first[kept], last[kept], np.sqrt(n / (size[kept] * (n - size[kept])))))
    return found


def distances(values, part):
    """Returns how far the sums of parts are from what they would be without a change, for each row of values with a mean of 0."""
    first, last, factor = part
    sums = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    return np.abs(sums[..., last] - sums[..., first]) * factor


def two_levels(values, first, last):
    """Returns the means of a part and of the rest, at their places."""
    inside = np.zeros(len(values), dtype=bool)
    inside[first:last] = True
    return np.where(inside, values[inside].mean(), values[~inside].mean())


def line(values):
    """Returns the straight line through a series."""
    days = np.arange(len(values))
    return np.polynomial.Polynomial.fit(days, values, 1)(days)


def deflation(values, fit):
    """Returns by what a distance is less, because what the fit leaves is alike from neighbour to neighbour."""
    n, left = len(values), values - fit
    squares = np.sum(left**2)
    found = float(np.sum(left[1:] * left[:-1]) / squares) if squares > 0 else 0.0
    alike = 0.0 if found < ALIKE / math.sqrt(n) else min(found + (2 + 3 * found) / n, ALIKE_MAX)
    return math.sqrt((1 - alike) / (1 + alike))


def significance(values, part, distance, level, rng):
    """Returns the p-value of a distance among permutations. Stops early when it is certainly above the level."""
    exceeded = tried = 0
    most, batch = int(PERMUTATIONS / level), max(1, BATCH // len(part[0]))
    while tried < most:
        rows = rng.permuted(np.tile(values, (min(batch, most - tried), 1)), axis=1)
        exceeded += int((distances(rows, part).max(axis=1) >= distance * (1 - ROUNDING)).sum())
        tried += len(rows)
        if exceeded - CERTAIN * math.sqrt(exceeded) > level * tried:
            return exceeded / tried
    return (exceeded + 1) / (tried + 1)


def significant_part(values, level, rng):
    """Returns (p, first, last) of the part that differs most from the rest, or None if none does."""
    if len(values) < 2 * SEGMENT_MIN:
        return None
    values, found = values - values.mean(), []
    for part, share in zip(parts(len(values)), (ENDS_SHARE, INSIDE_SHARE)):
        distance = distances(values, part)
        if not len(distance) or distance.max() <= ROUNDING:
            continue
        best = int(np.argmax(distance))
        first, last = int(part[0][best]), int(part[1][best])
        deflated = distance[best] * deflation(values, two_levels(values, first, last))
        p = significance(values, part, deflated, level * share, rng) / share
        if p <= level:
            found.append((-distance[best], p, first, last))
    return min(found)[1:] if found else None


def results_needed(level):
    """Returns how long a series must be for its greatest change to be significant at the level, if
    all measurements after it differ from all before. Of the permutations, only those that put the
    two parts apart again, in either order, are then as extreme; they are the fewest if the change
    is in the middle."""
    n = 2 * SEGMENT_MIN
    while 2 / math.comb(n, n // 2) > level * ENDS_SHARE:
        n += 1
    return n


def change_points(values, level=LEVEL):
    """Returns [(index, p)] in order: at index, the level differs from that before. level: the
    probability of finding a change where there is none; divide it by the number of series that are
    tested (Bonferroni)."""
    values, rng = np.asarray(values, dtype=float), np.random.default_rng(SEED)
    found, segments = {}, [(0, len(values))]
    while segments:
        first, last = segments.pop()
        part = significant_part(values[first:last], level, rng)
        if not part:
            continue
        cuts = [first + at for at in part[1:] if 0 < at < last - first]
        found |= {at: part[0] for at in cuts}
        segments += zip([first, *cuts], [*cuts, last])
    return sorted(found.items())


def drift(values, points, level=LEVEL):
    """Returns the p-value of a drift, or None if there is none: a straight line explains the series as well as the levels between
    these points do, by Schwarz's criterion (it has two parameters, and n levels have 2 n - 1), and it rises or falls more than by
    chance, by the rank correlation with time (Mann, "Nonparametric tests against trend", Econometrica 13, 1945)."""
    values, n = np.asarray(values, dtype=float), len(values)
    if n < 2 * SEGMENT_MIN or np.ptp(values) == 0:
        return None
    edges = [0, *(at for at, _ in points), n]
    levels = np.concatenate([np.full(b - a, values[a:b].mean()) for a, b in zip(edges, edges[1:])])

    straight = line(values)

    def criterion(fit, parameters):
        return n * math.log(max(np.sum((values - fit) ** 2), ROUNDING * np.sum(values**2))) + parameters * math.log(n)

    if criterion(straight, 2) > criterion(levels, 2 * len(points) + 1):
        return None
    score = np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)].sum()
    z = abs(score) / math.sqrt(n * (n - 1) * (2 * n + 5) / 18) * deflation(values, straight)
    p = 2 * scipy.stats.norm.sf(z) / DRIFT_SHARE
    return float(p) if p <= level else None
