"""Between which two kernels a figure changed."""

import math

import pytest
from bisection import bisect


@pytest.mark.parametrize("count", [2, 3, 4, 9, 16])
def test_the_right_pair_is_found_with_few_boots(count):
    for changed in range(1, count):
        booted = []

        def levels_at(place, changed=changed, booted=booted):
            booted.append(place)
            return {"call_ns": 1000 + place, "touch_ns": 500 if place < changed else 275}

        column, first, last, logarithm = bisect(count, levels_at)
        assert (column, first, last) == ("touch_ns", changed - 1, changed)
        assert math.isclose(math.exp(logarithm), 0.55)
        assert len(booted) == len(set(booted)) <= 2 + math.ceil(math.log2(max(count - 1, 1)))


def test_of_two_changes_the_greater_one_is_found():
    levels = [100, 100, 110, 110, 110, 150, 150]
    assert bisect(len(levels), lambda place: {"call_ns": levels[place]})[1:3] == (4, 5)


def test_where_the_ends_do_not_differ_nothing_is_found():
    booted = []
    assert bisect(9, lambda place: booted.append(place) or {"call_ns": 100 + place / 10}) is None
    assert booted == [0, 8]


def test_what_cannot_be_measured_in_the_middle_is_said():
    with pytest.raises(ValueError, match="call_ns is missing"):
        bisect(3, lambda place: {} if place == 1 else {"call_ns": 100 + 50 * place})
