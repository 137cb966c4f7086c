"""Finds the two neighbours, in a list of kernels in order, between which a figure changed."""

import math

import analysis


def levels_of(table):
    """Returns {column: level}, over the valid runs."""
    found = {}
    for column in table.columns:
        levels = sorted(level for level in analysis.levels(table.medians(column)) if level > 0)
        if levels:
            found[column] = levels[len(levels) // 2]
    return found


def change(before, after):
    """Returns the column that differs most, and the logarithm of its change, or None, 0.0 if no
    column is in both."""
    changes = {column: math.log(after[column] / before[column]) for column in before if column in after}
    column = max(changes, key=lambda c: abs(changes[c]), default=None)
    return column, changes.get(column, 0.0)


def bisect(count, levels_at):
    """Measures the i-th of count items, at least two, by levels_at(i), which returns {column:
    level}. Returns (column, first, last, logarithm of the change from first to last), where first
    and last are the neighbours between which most of the change happened, or None if the ends
    differ by at most analysis.MARGIN."""
    first, last = 0, count - 1
    before, after = levels_at(first), levels_at(last)
    column, whole = change(before, after)
    if abs(whole) <= math.log(1 + analysis.MARGIN):
        return None
    while last - first > 1:
        middle = (first + last) // 2
        between = levels_at(middle)
        if column not in between:
            raise ValueError(f"{column} is missing in the middle")
        if abs(math.log(between[column] / before[column])) > abs(math.log(after[column] / between[column])):
            last, after = middle, between
        else:
            first, before = middle, between
    return column, first, last, math.log(after[column] / before[column])
