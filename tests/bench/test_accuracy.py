"""What says how accurate the instrument is: the pairs of runs whose truth is known, and the table of load generators."""

import importlib.util
from pathlib import Path

import pytest

ACCURACY = Path(__file__).parents[2] / "bench" / "accuracy"
PAIRS, BY_CHANCE = 60, 5  # of 60 pairs, 3 are expected at most


def program(name):
    spec = importlib.util.spec_from_file_location(name, ACCURACY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(plain, law, factor, answer):
    """Returns how often compare says that of PAIRS pairs, which are always the same ones, for each condition."""
    rows = program("calibration").calibrate(plain, PAIRS, 20, 400, [law], [factor])
    return [count[answer] for _, _, _, count in rows]


@pytest.mark.parametrize("law", ["drifting", "bursty"])
def test_a_difference_that_is_none_is_seldom_found(plain, law):
    assert max(said(plain, law, 1, "yes")) <= BY_CHANCE


def test_a_difference_of_a_fifth_is_found(plain):
    assert min(said(plain, "heavy", 1.2, "yes")) >= PAIRS - BY_CHANCE


def test_a_figure_is_right_said_or_wrong():
    accuracy = program("accuracy")
    case = accuracy.Case("x", [], 400, {"p50": 5, "rate": 1600})
    right, wrong = accuracy.Said({"p50": 5.4, "rate": 1500}), accuracy.Said({"p50": 5, "rate": 1400})
    assert accuracy.judged(case, right) == "right" and accuracy.judged(case, wrong) == "wrong"
    wrong.valid = False
    assert accuracy.judged(case, wrong) == "said" and "rate 1400/s (!)" in accuracy.row(case, wrong)
    assert accuracy.judged(accuracy.Case("x", [], 400, {}, invalid=True), right) == "wrong"


def test_what_httpbench_says_of_a_server_is_read(plain):
    accuracy = program("accuracy")
    case = accuracy.Case("failures", ["--service", 2000, "--fail", 4], 0, {"failed": 25}, connections=4)
    with accuracy.truth(plain, case) as url:
        said = accuracy.httpbench(plain, case, url, 1)
    assert not accuracy.wrong(case, said) and said.words in ("FAILED", "CLIENT")
