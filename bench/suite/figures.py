"""Draws curves of kbench's tables with gnuplot, as SVG: every point, the median, and the band from
10 to 90 %."""

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
    series: list  # [(n, values)], one for each run


@dataclass
class Figure:
    """A figure. name: unique in a page; n: what is counted; unit: "ns" or "us" of the values shown,
    or another word; landmarks: [(n, words)]."""

    name: str
    n: str
    unit: str
    curves: list
    landmarks: list


def bins_of(series, spaced):
    last = max(int(n.max()) for n, _ in series) + 1
    edges = np.unique(np.round(spaced(1, last, LINE_BINS + 1)).astype(int))
    n, values = (np.concatenate(part) for part in zip(*series))
    order = np.argsort(n, kind="stable")
    n, values = n[order], values[order]
    for low, high in zip(edges[:-1], edges[1:]):
        inside = values[np.searchsorted(n, low):np.searchsorted(n, high)]
        if len(inside):
            yield ((low + high - 1) / 2, *np.quantile(inside, [0.1, 0.5, 0.9]))


def frame(figure):
    """Returns the upper end of the linear plot, and how many points are above it."""
    values = np.concatenate([v for curve in figure.curves for _, v in curve.series])
    top = max(float(np.quantile(v, FRAME_QUANTILE)) for curve in figure.curves for _, v in curve.series) * FRAME_ROOM
    top = min(top, float(values.max()) * 1.05)
    return max(top, 1.0), int((values > top).sum())


def number(value):
    return f"{value:.6g}"


def data_of(curve, log, top):
    """Returns two blocks of data: bands with medians, and points. Each point is a line of its own;
    together they become one path."""
    bands = [" ".join(map(number, row)) for row in bins_of(curve.series, np.geomspace if log else np.linspace)]
    points = [f"{n} {value}\n{n} {value}\n" for ns, values in curve.series for n, value in zip(ns, values)
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
            curves.append(f'$p{index} with lines lw 1.6 lc rgb "#b0{colour[1:]}"')
        if len(figure.curves) <= BANDS_MAX:
            curves.append(f'$b{index} using 1:2:4 with filledcurves fc rgb "#c0{colour[1:]}"')
        curves.append(f'$b{index} using 1:3 with lines lw 2 lc rgb "{colour}"')
    return "".join(blocks) + SCRIPT.format(
        width=WIDTH, height=HEIGHT, n=figure.n, unit=figure.unit, scale=scale, landmarks="\n".join(landmarks),
        format='"10^{%L}"' if log else '"%.0f"', curves=", \\\n".join(curves),
    )  # fmt: skip


def draw(figure, log):
    """Returns the SVG as text. Its ids begin with the figure's name, so that a page can have many
    figures. gnuplot writes a line of length 0 as a move; a "h0" appended to it makes it a dot."""
    done = subprocess.run(["gnuplot"], input=script_of(figure, log), capture_output=True, text=True, check=False)
    if done.returncode or "<svg" not in done.stdout:
        raise RuntimeError(f"gnuplot: {done.stderr}")
    svg = done.stdout[done.stdout.index("<svg"):]
    prefix = re.sub(r"\W", "-", f"{figure.name}-{'log' if log else 'linear'}")
    ids = set(re.findall(r"\bid=['\"]([\w-]+)", svg))
    used = ids & set(re.findall(r"#([\w-]+)['\")]", svg))
    svg = re.sub(r"""\bid=(['"])([\w-]+)\1""", lambda m: f'id="{prefix}-{m[2]}"' if m[2] in used else "", svg)
    for name in used:
        svg = re.sub(rf"#{name}(?=['\")])", f"#{prefix}-{name}", svg)
    svg = re.sub(r"(opacity='[\d.]+'\s+d=')([^']*)", lambda m: m[1] + re.sub(r"M([\d.,]+)\s*(?=M|$)", r"M\1h0", m[2]), svg)
    return re.sub(r"<title>[^<]*</title>|<desc>[^<]*</desc>", "", svg)
