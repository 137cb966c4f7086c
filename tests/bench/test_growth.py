"""The laws of 72 curves, with noise like that of clocks, are recognized: hardly any is not, and none is called something else."""

import re

import analysis
import numpy as np
import pytest
from test_analysis import N, runs_of

NEARLY = r"nearly O\(1\): 1\.\d+ times as much at the end"
LAWS = {  # a curve, and what is said of it
    "constant": (lambda n: np.full(len(n), 1300.0), r"O\(1\)"),
    "constant, slow": (lambda n: np.full(len(n), 80_000.0), r"O\(1\)"),
    "5 % more at the end": (lambda n: 1000 + 0.003 * n, rf"O\(1\)|{NEARLY}"),
    "18 % more at the end": (lambda n: 1000 + 0.012 * n, NEARLY),
    "24 % more at the end": (lambda n: 5000 + 0.08 * n, NEARLY),
    "linear": (lambda n: 2000 + 20.0 * n, r"O\(n\)"),
    "linear, from nearly nothing": (lambda n: 50 + 2.0 * n, r"O\(n\)"),
    "linear, 75 % more at the end": (lambda n: 2000 + 0.1 * n, r"O\(n\)"),
    "quadratic": (lambda n: 1000 + 0.01 * n**2, r"O\(n\^2\)"),
    "quadratic, late": (lambda n: 5000 + 0.001 * n**2, r"O\(n\^2\)"),
    "cubic": (lambda n: 1000 + 1e-6 * n**3.0, r"O\(n\^3\.\d ± 0\.\d\)|O\(n\^2\.9 ± 0\.\d\)"),
    "n log n": (lambda n: 500 + 2.0 * n * np.log(n + 2), r"O\(n log n\)"),
    "log n": (lambda n: 200 + 400 * np.log(n + 2), r"O\(log n\)"),
    "log n with an offset": (lambda n: 3000 + 300 * np.log(n + 2), r"O\(log n\)"),
    "log n from nearly nothing": (lambda n: 50 + 100 * np.log(n + 2), r"O\(log n\)"),
    "n^1.4": (lambda n: 500 + 0.5 * n**1.4, r"O\(n\^1\.4 ± 0\.\d\)"),
    "n^0.5": (lambda n: 500 + 30 * n**0.5, r"O\(n\^0\.[456] ± 0\.\d\)"),
    "knee at 2,000": (lambda n: 500 + np.maximum(0, n - 2000) * 0.2, r"O\(1\) up to (1[89]|2[012])\d\d, then linear"),
    "knee at 4,000": (lambda n: 1000 + np.maximum(0, n - 4000) * 0.5, r"O\(1\) up to (3[6789]|4[01234])\d\d, then linear"),
    "knee at 8,000": (lambda n: 3000 + np.maximum(0, n - 8000) * 2.0, r"O\(1\) up to (7[2-9]|8[0-8])\d\d, then linear"),
    "knee at 10,000": (lambda n: 1000 + np.maximum(0, n - 10_000) * 0.5, r"O\(1\) up to (9[2-9]|10[0-8])\d\d, then linear"),
    "saturation": (lambda n: 1000 + 3000 * (1 - np.exp(-n / 1500)), r"grows up to [34]\d\d\d, then O\(1\)"),
    "saturation, weak": (lambda n: 1000 + 600 * (1 - np.exp(-n / 1000)), r"grows up to [123]\d\d\d, then O\(1\)"),
    "saturation, slow": (lambda n: 500 + 2000 * (1 - np.exp(-n / 3000)), r"grows up to [5-8]\d\d\d, then O\(1\)"),
    "exponential": (lambda n: 1000 + 5 * np.exp(n / 2000), "exponential"),
    "exponential, steep": (lambda n: 500 + np.exp(n / 1500), "exponential"),
    "step": (lambda n: np.where(n < 7000, 600.0, 1800.0), r"O\(1\) up to (6[4-9]|7[0-6])\d\d, then (3|3\.1|2\.9) times as much"),
    "step, early": (lambda n: np.where(n < 300, 600.0, 1800.0), r"O\(1\) up to (2[5-9]|3[0-5])\d, then (3|3\.[12]|2\.[89]) times as much"),
    "step at 1,000": (lambda n: np.where(n < 1000, 600.0, 900.0), r"O\(1\) up to (8|9|10|11)\d\d, then 1\.[456] times as much"),
    "step, late": (lambda n: np.where(n < 13_000, 600.0, 1800.0), r"O\(1\) up to 1[23]\d\d\d, then (3|3\.1|2\.9) times as much"),
    "step, small": (lambda n: np.where(n < 5000, 1000.0, 1250.0), r"O\(1\) up to (4[5-9]|5[0-5])\d\d, then 1\.[23] times as much"),
    "step, smaller": (lambda n: np.where(n < 8000, 1000.0, 1200.0), r"O\(1\) up to (7[4-9]|8[0-6])\d\d, then 1\.2 times as much"),
    "step down": (lambda n: np.where(n < 6000, 3000.0, 1000.0), r"O\(1\) up to (5[5-9]|6[0-5])\d\d, then 0\.3\d? times as much"),
    "two steps": (lambda n: np.select([n < 4000, n < 10_000], [500.0, 2000.0], 30_000.0),
                  r"O\(1\) up to (3[6-9]|4[0-4])\d\d, then (4|4\.1|3\.9) times as much, from (9|10)\d\d\d on 1[456] times that"),
    "falling": (lambda n: 3000 - 0.15 * n, r"falls to 0\.2\d? times"),
    "falling as 1/n": (lambda n: 3000 / (1 + n / 3000), r"falls to 0\.[12]\d? times"),
}  # fmt: skip


def test_laws_are_recognized_and_none_is_mistaken():
    seen = [(name, analysis.growth(runs_of(law, seed=seed)).words, words) for name, (law, words) in LAWS.items() for seed in (1, 2)]
    others = [(name, words) for name, words, expected in seen if not re.fullmatch(expected, words)]
    assert len(seen) == 72 and not [(name, words) for name, words in others if not words.startswith("undecided")]
    assert len(others) <= 5, others


def test_a_power_beyond_the_grid_has_no_interval():
    words = analysis.growth(runs_of(lambda n: 100 + (n / 1000) ** 5.5)).words
    assert words == "exponential" or "±" not in words


@pytest.mark.parametrize("seed", range(3))
def test_two_levels_have_their_words(seed):
    """A fifth of the points lies on a line, as when Linux 2.4 forked."""
    rng = np.random.default_rng(seed)
    noise = [rng.lognormal(0, 0.1, len(N)) for _ in range(5)]
    runs = [(N, np.where(rng.random(len(N)) < 0.2, 1300 + 2.0 * N, 1300.0) * factor) for factor in noise]
    assert re.fullmatch(r"two levels: (7[89]|8[0-2]) % O\(1\), (1[89]|2[0-2]) % O\(n\)", analysis.tail_words(runs))


def test_a_tail_that_grows_is_said():
    """A third of the calls takes up to so much longer."""
    rng = np.random.default_rng(1)
    runs = [(N, 1000 * (1 + np.maximum(0, rng.random(len(N)) - 0.67) * N / 100) * rng.lognormal(0, 0.05, len(N))) for _ in range(5)]
    assert re.match(r"90 %: O\(n", analysis.tail_words(runs))


@pytest.mark.parametrize("name", ["constant", "linear", "log n", "step", "knee at 4,000"])
def test_other_curves_have_one_level_and_no_tail(name):
    assert analysis.tail_words(runs_of(LAWS[name][0])) == ""
