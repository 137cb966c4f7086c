"""Says by which law a curve grows: fits each of several laws to it, and takes the one that explains it best for its number of
parameters (Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978).

Deviations are relative ones. Those below TOLERANCE count as that: real curves are not exact, and a law that is closer than that
is not a better one. If another kind of law explains a curve nearly as well, it is not decided.
"""

from dataclasses import dataclass

import numpy as np

TOLERANCE = 0.01
CERTAIN = 3.0  # the difference of the criterion below which it is not decided ("positive", Kass and Raftery, 1995, is 2 to 6)
EXPONENTS = np.arange(0.1, 4.01, 0.05)
SCALES = np.geomspace(0.02, 2, 25)  # of saturation and exponential growth, as parts of the largest n
LEVEL_BINS = 2  # of a level, or of a part of a knee, at least
STEPS_MAX = 3
STEP_LEAST = 1.15  # a step is at least this factor


@dataclass
class Fit:
    """A law: its kind, how many parameters it has, and its values at the bins. detail: (exponent) of a power, (place) of a knee,
    (place, times) of each step, (place) from which a curve that saturates has 90 % of its rise."""

    kind: str
    parameters: int
    values: np.ndarray
    detail: tuple = ()
    criterion: float = np.inf

    def has_steps(self):
        return self.kind.endswith("steps")


def _linear(y, *bases):
    """Returns the values of the best sum of bases, by relative deviations."""
    columns = np.stack(bases, axis=1)
    coefficients = np.linalg.lstsq(columns / y[:, None], np.ones(len(y)), rcond=None)[0]
    return columns @ coefficients, coefficients


def _risen(y, basis):
    """Returns the best a + b basis, with an `a` that is not negative."""
    values, (a, _) = _linear(y, np.ones(len(y)), basis)
    return _linear(y, basis)[0] if a < 0 else values


def _best(fits, y):
    return min(fits, key=lambda fit: np.sum((1 - fit.values / y) ** 2))


def _steps(edges, y, count):
    """Returns the best fit with so many steps, by dynamic programming over the logarithms."""
    logs, n = np.log(y), len(y)
    sums, squares = np.concatenate([[0], np.cumsum(logs)]), np.concatenate([[0], np.cumsum(logs**2)])

    def cost(first, last):
        return squares[last] - squares[first] - (sums[last] - sums[first]) ** 2 / (last - first)

    best = {(0, last): (cost(0, last), (0,)) for last in range(LEVEL_BINS, n + 1)}
    for step in range(1, count + 1):
        for last in range((step + 1) * LEVEL_BINS, n + 1):
            best[step, last] = min((best[step - 1, at][0] + cost(at, last), (*best[step - 1, at][1], at))
                                   for at in range(step * LEVEL_BINS, last - LEVEL_BINS + 1))  # fmt: skip
    places = [*best[count, n][1], n]
    levels = [float(np.exp(np.mean(logs[a:b]))) for a, b in zip(places, places[1:])]
    values = np.concatenate([np.full(b - a, level) for a, b, level in zip(places, places[1:], levels)])
    detail = tuple((float(edges[at]), b / a) for at, a, b in zip(places[1:-1], levels, levels[1:]))
    return Fit(f"{count} steps", 2 * count + 1, values, detail)


def _slope_and_step(part, edges, y):
    """Returns the best fit of a line up to a place, and a level from there on."""
    found = []
    for at in range(2 * LEVEL_BINS, len(y) - LEVEL_BINS):
        before = _risen(y[:at], part[:at])
        level = 1 / np.mean(1 / y[at:])
        found.append(Fit("slope and steps", 4, np.concatenate([before, np.full(len(y) - at, level)]), ((float(edges[at]), level / before[-1]),)))
    return found


def fits(x, y, edges):
    """Returns the fits of all laws to the medians y of bins at x, which begin at the edges, the best first."""
    one, part, logs = np.ones(len(y)), x / x[-1], np.log(x)
    found = [
        Fit("constant", 1, _linear(y, one)[0]),
        Fit("linear", 2, _risen(y, part)),
        Fit("quadratic", 2, _risen(y, part**2)),
        Fit("logarithmic", 2, _linear(y, one, logs)[0]),
        Fit("n log n", 2, _risen(y, part * logs)),
        _best([Fit("power", 3, _risen(y, part**k), (float(k),)) for k in EXPONENTS], y),
        _best([Fit("knee", 3, _linear(y, one, np.maximum(0, part - part[at]))[0], (float(edges[at]),))
               for at in range(LEVEL_BINS, len(y) - LEVEL_BINS)], y),
        _best([Fit("saturation", 3, _linear(y, one, 1 - np.exp(-part / c))[0], (float(min(1, c * np.log(10)) * x[-1]),)) for c in SCALES[SCALES < 0.4]], y),
        _best([Fit("exponential", 3, _linear(y, one, np.exp((part - 1) / c))[0], ()) for c in SCALES[SCALES < 0.4]], y),
    ]  # fmt: skip
    steps = [_steps(edges, y, count) for count in range(1, STEPS_MAX + 1)]
    if sloping := _slope_and_step(part, edges, y):
        steps.append(_best(sloping, y))
    for fit in steps:
        if all(max(times, 1 / times) >= STEP_LEAST for _, times in fit.detail):
            found.append(fit)
    for fit in found:
        left = np.mean((1 - fit.values / y) ** 2)
        fit.criterion = len(y) * np.log(max(left, TOLERANCE**2)) + fit.parameters * np.log(len(y))
    return sorted(found, key=lambda fit: fit.criterion)
