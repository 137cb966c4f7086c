"""Analyses the tables of gatling-kbench(1): how a cost grows, where it has steps, and whether two
sets of runs differ.

The points of a run depend on each other. So, for intervals, runs are resampled first, and then the
points of a bin; and runs are compared, not points (Kalibera and Jones, "Rigorous benchmarking in
reasonable time", 2013).
"""

import functools
import re
from dataclasses import dataclass, field

import laws
import numpy as np
import scipy
from suite import read_table

SKIPPED_N = 50  # the first points are skipped: tables grow, caches fill
BINS, BINS_MIN = 48, 8
UNDISTURBED = 0.25  # quantile of the runs
CALM_RUNS = 3  # this many undisturbed runs are enough
RUNS_COMPARED = 4  # on each side, at least: with fewer no test can decide
BIN_POINTS = 5  # of each run, in a bin, at least
RESAMPLES, SEED = 400, 1
FLAT = 1.1  # O(1): the end is not more than this many times the beginning
WEAK = 1.25  # up to this many times, a curve grows so little that its law is not worth a word
SCATTER = 0.35  # of the medians around the best law: more hides it
LOG_EXPONENT = 0.4  # a power certainly below this cannot be told from a logarithm
WIDE = 0.8  # an exponent with a wider interval is undecided
GAP, SAME_SHARE = 1.5, 0.25  # between two levels, and by how much their shares may vary from bin to bin
LEAST_SHARE = 0.05  # of the points on a level
TAIL_POINTS = 5  # of a bin, beyond a percentile, at least
PEAK, PEAK_RUNS, PEAKS_NAMED = 3, 3, 8  # times the median of its group; runs in which it is at the same n
NEAR = 0.25  # to a whole number: caches bend a straight line by as much; the exponent is shown, too
SCATTERED = "undecided: the values scatter too much"
UNKNOWN = {"the values scatter too much", "undecided"}
MARGIN = 0.02  # results that differ by less are not different
SIGNIFICANCE = 0.05


@dataclass(eq=False)
class Table:
    """The table of a file. header: {key: values} of the lines that begin with "# key"; runs: {run:
    {column: array}}, including n, and what a group of points has besides its first; verdicts: {run: (verdict, words)}; landmarks: [(n, words)]."""

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

    def medians(self, column):
        """Returns the series of the medians of groups, or the points if each was kept."""
        return self.series(f"{column}.median") or self.series(column)

    def maxima(self, column):
        """Returns [(n, values)] likewise: the greatest value of each group, where it was. Empty if each point was kept."""
        places, values = self.series(f"{column}.max_n"), self.series(f"{column}.max")
        return [(place, value) for (_, place), (_, value) in zip(places, values)]

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
    table, rows, names = Table(), [], []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.removeprefix("# ").split("\t")
        if line.startswith("# verdict"):
            table.verdicts[int(cells[1])] = (cells[2], cells[3])
        elif line.startswith("# landmark"):
            table.landmarks.append((int(cells[1]), cells[2]))
        elif line.startswith("#"):
            table.header[cells[0]] = cells[1:]
        elif not names:
            names = cells[2:]
        else:
            try:
                rows.append([int(cell) for cell in cells])
                if len(rows[-1]) != len(names) + 2:
                    raise ValueError("columns")
            except ValueError:
                raise ValueError(f"line {number}: not a row of {len(names) + 2} numbers") from None
    if not names:
        raise ValueError("not a table of kbench")
    table.columns = [name for name in names if "." not in name]
    values = np.array(rows, dtype=np.int64).reshape(-1, len(names) + 2)
    for run in table.verdicts:
        own = values[values[:, 0] == run]
        table.runs[run] = {name: own[:, 1 + i] for i, name in enumerate(["n", *names])}
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
    for k in laws.EXPONENTS:
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


def rise_of(level):
    """Returns the ratio of the last third of a level to its first third."""
    third = max(1, len(level) // 3)
    return float(np.median(level[-third:]) / np.median(level[:third]))


def times_words(times):
    return f"{times:.2g} times" if times < 10 else f"{times:.0f} times"


def exponent_words(k, low, high):
    if high <= LOG_EXPONENT:
        return "O(log n)"
    if high - low > WIDE:
        return "undecided"
    if low <= laws.EXPONENTS[0]:
        return f"less than O(n^{high:.1f})"
    if high >= laws.EXPONENTS[-1]:
        return f"more than O(n^{low:.1f})"
    for whole, words in ((1, "O(n)"), (2, "O(n^2)")):
        if abs(k - whole) <= NEAR:
            return words
    return f"O(n^{k:.1f} ± {max(high - k, k - low, 0.05):.1f})"


def step_words(fit, x, y):
    (first, times), *others = fit.detail
    rise = rise_of(y[x < first])
    words = f"{'O(1)' if rise < WEAK else 'grows'} up to {first:.0f}, then {times_words(times)} as much"
    return words + "".join(f", from {n:.0f} on {times_words(times)} that" for n, times in others)


def law_words(fit, x, y, exponent):
    """Says in words what a law means. exponent: returns that of a power, with its interval."""
    rise = fit.values[-1] / fit.values[0]
    if fit.has_steps():
        return step_words(fit, x, y)
    if 1 / FLAT <= rise <= FLAT:
        return "O(1)"
    if rise < 1:
        return f"falls to {rise:.2g} times"
    if rise < WEAK:
        return f"nearly O(1): {rise:.2g} times as much at the end"
    if fit.kind == "power":
        return exponent_words(*exponent())
    return {
        "constant": "O(1)",
        "linear": "O(n)",
        "quadratic": "O(n^2)",
        "logarithmic": "O(log n)",
        "n log n": "O(n log n)",
        "knee": f"O(1) up to {fit.detail[0]:.0f}, then linear" if fit.detail else "",
        "saturation": f"grows up to {fit.detail[0]:.0f}, then O(1)" if fit.detail else "",
        "exponential": "exponential",
    }[fit.kind]


def dense_at_both_ends(first, last, count):
    """Returns edges whose distances grow evenly: steps may be early and late."""
    return first + (last - first) * np.linspace(0, 1, count) ** 2


def growth(series):
    """Returns how the values of some runs grow with n."""
    series = [(n, np.asarray(values, dtype=float)) for n, values in series]
    edges = edges_of(series, BINS, dense_at_both_ends) if series else None
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

    @functools.cache
    def exponent():  # takes longer than all else, and only powers have one
        return (float(fit_powers(x, y[None, :])[0]), *interval(fit_powers(x, samples)))

    words, best = words_of_curve(x, y, edges, exponent)
    changes = not (best and best.has_steps()) and words != "O(1)" and not words.startswith("nearly")
    if best is None or (changes and ratio[1] <= 1 <= ratio[2]):
        return Growth(SCATTERED, None, ratio)
    steps = list(best.detail) if best.has_steps() else []
    return Growth(words, exponent() if best.kind == "power" and not words.startswith("undecided") else None, ratio, steps)


def words_of_curve(x, y, edges, exponent):
    """Returns the words for the medians y of bins, and the law that fits best, or None if none does."""
    best, *others = laws.fits(x, y, edges)
    if np.sqrt(np.mean((1 - best.values / y) ** 2)) > SCATTER:
        return SCATTERED, None
    words = law_words(best, x, y, exponent)
    if best.has_steps() or max(best.values[-1] / best.values[0], best.values[0] / best.values[-1]) < WEAK:
        return words, best
    near = [fit for fit in others if fit.criterion - best.criterion < laws.CERTAIN]
    found = list(dict.fromkeys([words, *(law_words(fit, x, y, exponent) for fit in near)]))
    found = [words for words in found if words != "undecided"] or ["undecided"]
    return (found[0] if len(found) == 1 else f"undecided: {' or '.join(found)}"), best


# --- tails ---


def class_of(x, y, edges):
    """Returns the words for one curve, without intervals."""
    return words_of_curve(x, y, edges, lambda: 3 * (float(fit_powers(x, y[None, :])[0]),))[0]


def levels_of(series):
    """Returns (share, words, words) of the lower of two levels if the points lie on two, and the laws of both; otherwise None.
    They do if in the last third of the bins there is a gap between the points, of a factor of GAP at least, and if its place
    among them stays the same."""
    edges = edges_of(series, BINS, dense_at_both_ends)
    if edges is None or len(edges) <= BINS_MIN:
        return None
    pools = [np.sort(np.concatenate([v[(n >= a) & (n < b)] for n, v in series])) for a, b in zip(edges, edges[1:])]
    if any(pool[0] <= 0 for pool in pools):
        return None
    shares, lower, upper = [], [], []
    for pool in pools:
        first, last = int(len(pool) * LEAST_SHARE), int(len(pool) * (1 - LEAST_SHARE))
        gaps = pool[first + 1 : last + 1] / pool[first:last]
        at = first + 1 + int(np.argmax(gaps)) if len(gaps) else 0
        split = len(gaps) > 0 and gaps.max() >= GAP
        shares.append(at / len(pool) if split else np.nan)
        lower.append(np.median(pool[:at] if split else pool))
        upper.append(np.median(pool[at:]) if split else np.nan)
    shares, lower, upper = map(np.array, (shares, lower, upper))
    late, seen = shares[-(len(shares) // 3) :], ~np.isnan(shares)
    if np.isnan(late).any() or np.ptp(late) > SAME_SHARE or seen.sum() < BINS_MIN:
        return None
    x = np.sqrt(edges[:-1] * (edges[1:] - 1).astype(float))
    return float(np.median(late)), class_of(x, lower, edges), class_of(x[seen], upper[seen], edges[:-1][seen])


def tail_words(series):
    """Returns the words for what the median does not show: two levels, or percentiles that grow by another law; or ""."""
    series = [(n, np.asarray(values, dtype=float)) for n, values in series]
    edges = edges_of(series, BINS, dense_at_both_ends) if series else None
    if edges is None or len(edges) <= BINS_MIN:
        return ""
    if levels := levels_of(series):
        share, low, high = levels
        return f"two levels: {share:.0%} {low}, {1 - share:.0%} {high}".replace("%", " %").replace(SCATTERED, "scattered")
    x = np.sqrt(edges[:-1] * (edges[1:] - 1).astype(float))
    pools = [np.concatenate([v[(n >= a) & (n < b)] for n, v in series]) for a, b in zip(edges, edges[1:])]
    found, middle = [], None
    for percentile in (50, 90, 99):
        y = np.array([np.percentile(pool, percentile) for pool in pools])
        enough = np.array([len(pool) * (100 - percentile) >= 100 * TAIL_POINTS for pool in pools])
        if (y <= 0).any() or enough.sum() <= BINS_MIN:
            continue
        words = class_of(x[enough], y[enough], edges[:-1][enough]).removeprefix("undecided: ")
        kinds = set(re.sub(r"[\d.]+", "", words).split(" or "))
        middle = middle or kinds
        if middle & UNKNOWN:
            return ""
        if not kinds & (middle | UNKNOWN):
            found.append(f"{percentile} %: {words}")
    return "; ".join(found)


def peaks(table, column):
    """Returns [(n, factor)] of single points that are PEAK times the median of their group, at the same n in each of PEAK_RUNS
    runs or more, as when a table of the kernel grows."""
    medians, maxima = table.medians(column), table.maxima(column)
    if len(maxima) < PEAK_RUNS:
        return []
    runs = [{int(n): value / middle for n, value, middle in zip(places, values, middles) if value >= PEAK * middle > 0}
            for (places, values), (_, middles) in zip(maxima, medians)]  # fmt: skip
    everywhere = set.intersection(*map(set, runs))
    return [(n, float(np.median([run[n] for run in runs]))) for n in sorted(everywhere)]


def peak_words(table, column):
    """Says in words where the peaks are; "" if there are none."""
    found = peaks(table, column)
    if not found:
        return ""
    places = ", ".join(str(n) for n, _ in found[:PEAKS_NAMED]) + (f" and {len(found) - PEAKS_NAMED} more" if len(found) > PEAKS_NAMED else "")
    return f"peaks in every run at {places}, of up to {times_words(max(times for _, times in found))} as much"


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
