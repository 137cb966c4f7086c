"""Draws curves of kbench's tables with gnuplot, as SVG: points, the greatest of each group of points,
the median, and the band from 10 to 90 %."""

import re
import subprocess
from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 640, 400
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"]  # Okabe and Ito
LINE_BINS = 60
BANDS_MAX = 4  # curves whose bands can still be distinguished
FRAME_QUANTILE, FRAME_ROOM = 0.995, 1.25  # of the linear plot: otherwise spikes would compress the rest

SCRIPT = """
set terminal svg size {width},{height} font "sans-serif,13" background "white" rounded
set encoding utf8
unset key
set border 3
set tics nomirror
set grid lc rgb "#e4e4e4"
set xlabel "{n}"
set ylabel "{unit}"
set format x "%.0f"
set format y {format}
{scale}
{landmarks}
plot {curves}
"""


@dataclass
class Curve:
    """Of each run (n, values): its points, the medians of groups of points, and their maxima."""

    series: list
    medians: list
    maxima: list

    def times(self, factor):
        return Curve(*([(n, values * factor) for n, values in part] for part in (self.series, self.medians, self.maxima)))


@dataclass
class Figure:
    """A figure. name: unique in a page; n: what is counted; unit: "ns" or "us" of the values shown,
    or another word; landmarks: [(n, words)]."""

    name: str
    n: str
    unit: str
    curves: list
    landmarks: list


def pooled(series):
    """Returns the n and the values of all runs, in the order of n."""
    n, values = (np.concatenate(part) for part in zip(*series))
    order = np.argsort(n, kind="stable")
    return n[order], values[order]


def bins_of(curve, spaced):
    """Yields n, the quantile of 10 %, the median, and the quantile of 90 % of bins of n."""
    n, values = pooled(curve.series)
    middle_n, medians = pooled(curve.medians)
    edges = np.unique(np.round(spaced(1, n[-1] + 1, LINE_BINS + 1)).astype(int))
    for low, high in zip(edges[:-1], edges[1:]):
        inside = values[np.searchsorted(n, low):np.searchsorted(n, high)]
        middle = medians[np.searchsorted(middle_n, low):np.searchsorted(middle_n, high)]
        if len(inside):
            yield ((low + high - 1) / 2, np.quantile(inside, 0.1), np.median(middle), np.quantile(inside, 0.9))


def frame(figure):
    """Returns the upper end of the linear plot, and how many points are above it."""
    values = np.concatenate([v for curve in figure.curves for _, v in curve.series + curve.maxima])
    top = max(float(np.quantile(v, FRAME_QUANTILE)) for curve in figure.curves for _, v in curve.series) * FRAME_ROOM
    top = min(top, float(values.max()) * 1.05)
    return max(top, 1.0), int((values > top).sum())


def number(value):
    return f"{value:.6g}"


def data_of(curve, log, top):
    """Returns two blocks of data: bands with medians, and points. Each point is a line of its own;
    together they become one path."""
    bands = [" ".join(map(number, row)) for row in bins_of(curve, np.geomspace if log else np.linspace)]
    points = [f"{n} {value}\n{n} {value}\n" for ns, values in curve.series + curve.maxima for n, value in zip(ns, values)
              if (n > 0 and value > 0 if log else value <= top)]  # fmt: skip
    return "\n".join(bands), "\n".join(points)


def script_of(figure, log):
    top, _ = frame(figure)
    scale = "set logscale xy" if log else f"set yrange [0:{number(top)}]\nset xrange [0:*]"
    landmarks, blocks, curves = [], [], []
    last = max(int(n.max()) for curve in figure.curves for n, _ in curve.series)
    for n, words in figure.landmarks:
        if n > last:
            continue
        landmarks.append(f'set arrow from first {n}, graph 0 to first {n}, graph 1 nohead dt 3 lc rgb "#666666"')
        landmarks.append(f'set label "{words} ({n}) " at first {n}, graph 0.97 right rotate by 90 offset -0.6,0 '
                         f'tc rgb "#444444" font ",10"')  # fmt: skip
    for index, curve in enumerate(figure.curves):
        bands, points = data_of(curve, log, top)
        colour = COLOURS[index % len(COLOURS)]
        blocks.append(f"$b{index} << EOD\n{bands}\nEOD\n$p{index} << EOD\n{points}\nEOD\n")
        if points:
            curves.append(f'$p{index} with lines lw 1.6 lc rgb "#90{colour[1:]}"')
        if len(figure.curves) <= BANDS_MAX:
            curves.append(f'$b{index} using 1:2:4 with filledcurves fc rgb "#c0{colour[1:]}"')
        curves.append(f'$b{index} using 1:3 with lines lw 2 lc rgb "{colour}"')
    return "".join(blocks) + SCRIPT.format(
        width=WIDTH, height=HEIGHT, n=figure.n, unit=figure.unit, scale=scale, landmarks="\n".join(landmarks),
        format='"10^{%L}"' if log else '"%.0f"', curves=", \\\n".join(curves),
    )  # fmt: skip


DOT = re.compile(r"M([\d.]+),([\d.]+)h0")
DOTS = re.compile(r"<path (stroke='[^']*' opacity='[\d.]+') +d='((?:M[\d.,]+h0)+)'/>")


def dots_once(svg):
    """Replaces the dots of each colour by one path that has each pixel once, from left to right."""
    pixels = {}
    for style, dots in DOTS.findall(svg):
        pixels.setdefault(style, set()).update((round(float(x)), round(float(y))) for x, y in DOT.findall(dots))

    def path(match):
        x = y = 0
        moves = ""
        for right, down in sorted(pixels.pop(match[1], ())):
            moves += f"m{right - x},{down - y}h0"
            x, y = right, down
        return f"<path {match[1]} d='{moves}'/>" if moves else ""

    return DOTS.sub(path, svg)


def draw(figure, log):
    """Returns the SVG as text, without the marks and the ids of gnuplot, so that a page can have
    many figures. gnuplot writes a line of length 0 as a move; a "h0" appended to it makes it a dot."""
    done = subprocess.run(["gnuplot"], input=script_of(figure, log), capture_output=True, text=True, check=False)
    if done.returncode or "<svg" not in done.stdout:
        raise RuntimeError(f"gnuplot: {done.stderr}")
    svg = re.sub(r"<(title|desc|defs)>.*?</\1>|\bid=(['\"]).*?\2", "", done.stdout[done.stdout.index("<svg"):], flags=re.DOTALL)
    svg = re.sub(r"(opacity='[\d.]+'\s+d=')([^']*)", lambda m: m[1] + re.sub(r"M([\d.,]+)\s*(?=M|$)", r"M\1h0", m[2]), svg)
    return re.sub(r"<g[^>]*>\s*</g>|\s+(?=[<>])", "", dots_once(svg))
