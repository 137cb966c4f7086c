"""Draws curves as SVG with gnuplot, a line for each server."""

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


def can_draw(program):
    """Returns whether there is gnuplot; without, says so in the name of a program."""
    found = shutil.which("gnuplot")
    if not found:
        print(f"{program}: gnuplot is not installed: no plots", file=sys.stderr)
    return bool(found)


def panel(number, title, curves):
    """Commands that draw curves: {name: [(x, y)]}; a y that is no number is left out."""
    data, lines = "", []
    for index, (name, points) in enumerate(curves.items()):
        block = f"$c{number}_{index}"
        known = "".join(f"{at} {value}\n" for at, value in points if value == value)
        data += f"{block} << EOD\n{known or '0 NA' + chr(10)}EOD\n"
        lines.append(f'{block} using 1:2 with linespoints lw 2 pt 7 ps 0.5 title "{name}"')
    return PANEL.format(title=title, data=data, lines=", ".join(lines))


def draw_panels(path, x, panels, scale=""):
    """Panels beside each other: {title: curves}. scale: commands of gnuplot."""
    if "logscale y" in scale:
        scale = "set yrange [*:*]; " + scale
    several = len(panels) > 1
    script = HEAD.format(width=640 * len(panels), output=path, x=x, scale=scale, key="outside right top")
    script += f"set multiplot layout 1,{len(panels)}\n" * several
    script += "".join(panel(number, title, curves) for number, (title, curves) in enumerate(panels.items()))
    script += "unset multiplot\n" * several
    subprocess.run(["gnuplot"], input=script, text=True, check=True, stderr=subprocess.DEVNULL)  # it warns of flat curves


def draw(path, title, x, curves, scale=""):
    """One panel."""
    draw_panels(path, x, {title: curves}, scale)
