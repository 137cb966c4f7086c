"""Draws curves as SVG with gnuplot, a line for each server."""

import math
import shutil
import subprocess
import sys

HEAD = """
set terminal svg size {width},400 font "sans-serif,13" background "white"
set output "{output}"
set xlabel "{x}"
set yrange [0:*]
{scale}
set grid lc rgb "#dddddd"
set key {key}
set border 3
set tics nomirror
set datafile missing "NA"
"""
PANEL = """
set title "{title}"
{data}
plot {lines}
"""
NOTHING = """
set title "{title}"
set label 1 "no value to draw" at graph 0.5, 0.5 center
plot [1:2] [1:2] NaN notitle
unset label 1
"""


def can_draw(program):
    """Returns whether gnuplot is installed. If not, prints that in the name of a program."""
    found = shutil.which("gnuplot")
    if not found:
        print(f"{program}: gnuplot is not installed: no plots", file=sys.stderr)
    return bool(found)


def panel(number, title, curves, above):
    """Returns commands that draw curves: {name: [(x, y)]}. A y that is not a number, or not greater
    than above, is left out."""
    known = {name: [(x, y) for x, y in points if y > above] for name, points in curves.items()}
    if not any(known.values()):
        return NOTHING.format(title=title)
    data, lines = "", []
    for index, (name, points) in enumerate(known.items()):
        block = f"$c{number}_{index}"
        data += f"{block} << EOD\n" + ("".join(f"{x} {y}\n" for x, y in points) or "0 NA\n") + "EOD\n"
        lines.append(f'{block} using 1:2 with linespoints lw 2 pt 7 ps 0.5 title "{name}"')
    return PANEL.format(title=title, data=data, lines=", ".join(lines))


def draw_panels(path, x, panels, scale=""):
    """Draws panels side by side: {title: curves}. scale: commands of gnuplot."""
    above = -math.inf
    if "logscale y" in scale:
        scale, above = "set yrange [*:*]; " + scale, 0
    several = len(panels) > 1
    script = HEAD.format(width=640 * len(panels), output=path, x=x, scale=scale, key="outside right top")
    script += f"set multiplot layout 1,{len(panels)}\n" * several
    script += "".join(panel(number, title, curves, above) for number, (title, curves) in enumerate(panels.items()))
    script += "unset multiplot\n" * several
    subprocess.run(["gnuplot"], input=script, text=True, check=True, stderr=subprocess.DEVNULL)  # warns of flat curves


def draw(path, title, x, curves, scale=""):
    """Draws a single panel."""
    draw_panels(path, x, {title: curves}, scale)
