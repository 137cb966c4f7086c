"""Analyses the tables of gatling-kbench(1): how a cost grows, where it has steps, and whether two
sets of runs differ.

The points of a run depend on each other. So, for intervals, runs are resampled first, and then the
points of a bin; and runs are compared, not points (Kalibera and Jones, "Rigorous benchmarking in
reasonable time", 2013).
"""

from dataclasses import dataclass, field

import numpy as np
import scipy
from suite import read_table

SKIPPED_N = 50  # the first points are skipped: tables grow, caches fill
BINS, STEP_BINS, BINS_MIN = 40, 80, 8
UNDISTURBED = 0.25  # quantile of the runs
CALM_RUNS = 3  # this many undisturbed runs are enough
RUNS_COMPARED = 4  # on each side, at least: with fewer no test can decide
BIN_POINTS = 5  # of each run, in a bin, at least
RESAMPLES, SEED = 400, 1
EXPONENTS = np.arange(0.1, 3.01, 0.05)
FLAT = 1.25  # O(1): the end is certainly less than this many times the beginning
GROWN = 1.1  # not O(1): it is certainly more than this
LOG_EXPONENT = 0.4  # a power certainly below this cannot be told from a logarithm
WIDE = 0.8  # an exponent with a wider interval is undecided
NEAR = 0.25  # to a whole number: caches bend a straight line by as much; the exponent is shown, too
STEP = 1.5  # a step is at least this factor
STEP_SHARE = 0.5  # levels may leave at most this share of what the smooth curve leaves unexplained
LEVEL_BINS = 4  # bins of a level, at least
STEPS_MAX = 3
MARGIN = 0.02  # results that differ by less are not different
SIGNIFICANCE = 0.05


@dataclass(eq=False)
class Table:
    """The table of a file. header: {key: values} of the lines that begin with "# key"; runs: {run:
    {column: array}}, including n; verdicts: {run: (verdict, words)}; landmarks: [(n, words)]."""

    header: dict = field(default_factory=dict)
    columns: list = field(default_factory=list)
    runs: dict = field(default_factory=dict)
    verdicts: dict = field(default_factory=dict)
    landmarks: list = field(default_factory=list)

    def series(self, column):
        """Returns [(n, values)] for each valid run. Failed and disturbed runs are left out if
        enough others remain, and so are runs that reached less than half the n of most runs."""
        there = {number: run for number, run in self.runs.items() if len(run["n"]) and column in run}
        calm = {number: run for number, run in there.items() if self.verdicts[number][0] not in ("FAIL", "NOISY")}
        runs = list((calm if len(calm) >= CALM_RUNS else there).values())
        reached = np.median([run["n"].max() for run in runs]) if runs else 0
        return [(run["n"], run[column]) for run in runs if 2 * run["n"].max() >= reached]

    def verdict(self):
        """Returns the worst verdict of the runs, and its reason."""
        order = ["FAIL", "SKIP", "CLIENT", "NOISY", "LIMIT", "XPASS", "PASS"]
        return min(self.verdicts.values(), key=lambda v: order.index(v[0]), default=("FAIL", "no run"))


def load(path):
    try:
        return parse(read_table(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(text):
    """Returns the table that kbench has printed."""
    table, rows = Table(), []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.removeprefix("# ").split("\t")
        if line.startswith("# verdict"):
            table.verdicts[int(cells[1])] = (cells[2], cells[3])
        elif line.startswith("# landmark"):
            table.landmarks.append((int(cells[1]), cells[2]))
        elif line.startswith("#"):
            table.header[cells[0]] = cells[1:]
        elif not table.columns:
            table.columns = cells[2:]
        else:
            try:
                rows.append([int(cell) for cell in cells])
                if len(rows[-1]) != len(table.columns) + 2:
                    raise ValueError("columns")
            except ValueError:
                raise ValueError(f"line {number}: not a row of {len(table.columns) + 2} numbers") from None
    if not table.columns:
        raise ValueError("not a table of kbench")
    values = np.array(rows, dtype=np.int64).reshape(-1, len(table.columns) + 2)
    for run in table.verdicts:
        own = values[values[:, 0] == run]
        table.runs[run] = {name: own[:, 1 + i] for i, name in enumerate(["n", *table.columns])}
    return table


# --- growth ---


@dataclass
class Growth:
    """words: the result in words; exponent and ratio of the end to the beginning, with 95 %
    intervals; steps: [(n, factor)]."""

    words: str
    exponent: tuple | None = None
    ratio: tuple | None = None
    steps: list = field(default_factory=list)


def binned(series, edges):
    """Returns the medians: a row for each run, a column for each bin."""
    out = np.empty((len(series), len(edges) - 1))
    for row, (n, values) in enumerate(series):
        place = np.digitize(n, edges) - 1
        for column in range(len(edges) - 1):
            out[row, column] = np.median(values[place == column])
    return out


def edges_of(series, bins, spaced):
    """Returns the edges of bins that have enough points of each run, or None if there are too few
    points."""
    last = max(int(n.max()) for n, _ in series) + 1
    if last <= SKIPPED_N + bins:
        return None
    edges = [SKIPPED_N]
    for edge in np.round(spaced(SKIPPED_N, last, bins + 1)[1:]).astype(int):
        if all(((n >= edges[-1]) & (n < edge)).sum() >= BIN_POINTS for n, _ in series):
            edges.append(int(edge))
    edges[-1] = last  # that of the runs that go furthest
    return np.array(edges) if len(edges) > 1 else None


def resampled(series, edges, rng):
    """Draws runs, and the points of each bin, with replacement (bootstrap). Returns the medians of
    each run's bins, of shape (run, bin, resample), and the runs that were drawn, of shape
    (resample, run)."""
    medians = np.empty((len(series), len(edges) - 1, RESAMPLES))
    for run, (n, values) in enumerate(series):
        place = np.digitize(n, edges) - 1
        for b in range(len(edges) - 1):
            pool = values[place == b]
            medians[run, b] = np.median(pool[rng.integers(len(pool), size=(RESAMPLES, len(pool)))], axis=1)
    return medians, rng.integers(len(series), size=(RESAMPLES, len(series)))


def undisturbed(medians, axis):
    """Returns the least disturbed value of each bin. Other load only adds time, often to some runs
    for a while."""
    return np.quantile(medians, UNDISTURBED, axis=axis)


def fit_powers(x, ys):
    """Returns, for each row of ys, the k of the best fit y = a + b x^k, where a and b are not
    negative, by relative errors."""
    best, left = np.zeros(len(ys)), np.full(len(ys), np.inf)
    weights = 1 / np.median(ys, axis=0)
    for k in EXPONENTS:
        power = (x / x[-1]) ** k
        both = np.stack([weights, power * weights], axis=1)
        coefficients = ys * weights @ np.linalg.pinv(both).T
        slope_alone = (ys * weights @ (power * weights)) / np.sum((power * weights) ** 2)
        below = coefficients[:, 0] < 0
        coefficients[below] = np.stack([np.zeros(below.sum()), slope_alone[below]], axis=1)
        rest = np.sum((ys * weights - coefficients @ both.T) ** 2, axis=1)
        better = (rest < left) & (coefficients[:, 1] > 0)
        best[better], left[better] = k, rest[better]
    return best


def interval(values):
    return float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))


def unexplained(logs):
    """Returns the sum of the absolute deviations from one level."""
    return float(np.sum(np.abs(logs - np.median(logs))))


def split(logs):
    """Returns where to split the values into the two levels that explain most, and the remaining
    deviations."""
    sums = [unexplained(logs[:i]) + unexplained(logs[i:]) for i in range(LEVEL_BINS, len(logs) - LEVEL_BINS + 1)]
    return LEVEL_BINS + int(np.argmin(sums)), min(sums)


def find_steps(x, y):
    """Returns steps [(n, factor)] in order, if a few levels explain the bins far better than any
    smooth curve."""
    logs = np.log(y)
    ends = [0, len(y)]
    enough = STEP_SHARE * float(np.sum(np.abs(logs - np.log(smooth_curve(x, y)))))
    while len(ends) - 2 < STEPS_MAX:
        gains = {}
        for first, last in zip(ends[:-1], ends[1:]):
            if last - first >= 2 * LEVEL_BINS:
                at, left = split(logs[first:last])
                gains[first + at] = unexplained(logs[first:last]) - left
        if not gains:
            return []
        ends = sorted([*ends, max(gains, key=gains.get)])
        levels = [float(np.median(logs[first:last])) for first, last in zip(ends[:-1], ends[1:])]
        times = np.exp(np.diff(levels))
        if (np.maximum(times, 1 / times) < STEP).any():
            return []
        if sum(unexplained(logs[first:last]) for first, last in zip(ends[:-1], ends[1:])) <= enough:
            return [(float(x[at]), float(t)) for at, t in zip(ends[1:-1], times)]
    return []


def smooth_curve(x, y):
    """Returns the values at x of the best fit a + b x^k."""
    (k,) = fit_powers(x, y[None, :])
    power = (x / x[-1]) ** k
    both = np.stack([1 / y, power / y], axis=1)
    coefficients = np.linalg.pinv(both) @ np.ones(len(y))
    curve = coefficients[0] + coefficients[1] * power
    return np.where(curve > 0, curve, y)


def rise_of(level):
    """Returns the ratio of the last third of a level to its first third."""
    third = max(1, len(level) // 3)
    return float(np.median(level[-third:]) / np.median(level[:third]))


def times_words(times):
    return f"{times:.2g} times" if times < 10 else f"{times:.0f} times"


def exponent_words(k, low, high):
    if high <= LOG_EXPONENT:
        return "O(log n)" if k > EXPONENTS[0] else "less than O(log n)"
    if high - low > WIDE:
        return "undecided"
    if low <= EXPONENTS[0]:
        return f"less than O(n^{high:.1f})"
    for whole, words in ((1, "O(n)"), (2, "O(n^2)")):
        if abs(k - whole) <= NEAR:
            return words
    return f"O(n^{k:.1f} ± {max(high - k, k - low, 0.05):.1f})"


def growth(series):
    """Returns how the values of some runs grow with n."""
    series = [(n, np.asarray(values, dtype=float)) for n, values in series]
    edges = edges_of(series, BINS, np.geomspace) if series else None
    if edges is None or len(edges) <= BINS_MIN:
        return Growth("undecided: too few points")
    rng = np.random.default_rng(SEED)
    medians, drawn = resampled(series, edges, rng)
    samples = undisturbed(medians[drawn, :, np.arange(RESAMPLES)[:, None]], axis=1)  # resample, bin
    x = np.sqrt(edges[:-1] * (edges[1:] - 1).astype(float))
    y = undisturbed(binned(series, edges), axis=0)
    if (y <= 0).any():
        return Growth("undecided: there is nothing to see")

    tenth = max(3, len(x) // 10)
    ratios = np.median(samples[:, -tenth:], axis=1) / np.median(samples[:, :tenth], axis=1)
    ratio = (float(np.median(y[-tenth:]) / np.median(y[:tenth])), *interval(ratios))

    steps = []
    if (step_edges := edges_of(series, STEP_BINS, np.linspace)) is not None:
        step_y = undisturbed(binned(series, step_edges), axis=0)
        steps = find_steps(step_edges[:-1].astype(float), step_y) if (step_y > 0).all() else []
    if steps:
        rise = rise_of(step_y[step_edges[:-1] < steps[0][0]])
        steps = steps if rise * FLAT > 1 else []  # a curve that falls all the time has no levels
    if steps:
        words = f"{'O(1)' if rise < FLAT else 'grows'} up to {steps[0][0]:.0f}, then {times_words(steps[0][1])} as much"
        for n, times in steps[1:]:
            words += f", from {n:.0f} on {times_words(times)} that"
        return Growth(words, None, ratio, steps)
    if ratio[2] < FLAT:
        return Growth("O(1)", None, ratio)
    k = float(fit_powers(x, y[None, :])[0])
    low, high = interval(fit_powers(x, samples))
    if ratio[1] < GROWN:
        return Growth("undecided", (k, low, high), ratio)
    return Growth(exponent_words(k, low, high), (k, low, high), ratio)


# --- comparison ---


@dataclass
class Difference:
    """words: the result in words; ratio of the second to the first, with its 95 % interval; p of
    the Mann-Whitney test; delta: Cliff's, from -1 (all are less) to 1."""

    words: str
    ratio: tuple | None = None
    p: float | None = None
    delta: float | None = None


def level(n, values):
    """Returns one number for a run: the geometric mean of the medians of its bins, so that every
    part of the curve has the same weight."""
    edges = edges_of([(n, values)], BINS, np.geomspace)
    medians = binned([(n, values)], edges)[0] if edges is not None else np.array([np.median(values)])
    medians = medians[medians > 0]
    return float(np.exp(np.mean(np.log(medians)))) if len(medians) else float("nan")


def levels(series):
    """Returns the level of each run."""
    return [level(n, np.asarray(values)) for n, values in series]


def is_time(column):
    return column.endswith("_ns")


def difference(first, second):
    """Tests whether the values of some runs differ from those of others, up to the n that both have
    reached."""
    if not first or not second:
        return Difference("no runs to compare")
    last = min(int(n.max()) for n, _ in [*first, *second])
    a, b = ([level(n[n <= last], np.asarray(v)[n <= last]) for n, v in runs] for runs in (first, second))
    if min(len(a), len(b)) < RUNS_COMPARED or np.isnan([*a, *b]).any():
        return Difference("no difference shown: too few runs")
    rng = np.random.default_rng(SEED)
    draws = [np.median(rng.choice(b, len(b))) / np.median(rng.choice(a, len(a))) for _ in range(RESAMPLES)]
    ratio = (float(np.median(b) / np.median(a)), *interval(draws))
    p = float(scipy.stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)
    delta = float(np.mean([np.sign(y - x) for x in a for y in b]))
    within = 1 - MARGIN < ratio[0] < 1 + MARGIN
    if p >= SIGNIFICANCE or within:
        return Difference("no difference shown", ratio, p, delta)
    return Difference(f"{ratio[0]:.2f} times ({ratio[1]:.2f}-{ratio[2]:.2f})", ratio, p, delta)
