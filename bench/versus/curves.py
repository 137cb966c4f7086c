"""Draws curves as SVG with gnuplot, a line for each server."""

import subprocess

SCRIPT = """
set terminal svg size 640,400 font "sans-serif,13" background "white"
set output "{output}"
set title "{title}"
set xlabel "{x}"
set yrange [0:*]
{scale}
set grid lc rgb "#dddddd"
set key outside right top
set border 3
set tics nomirror
set datafile missing "NA"
{data}
plot {lines}
"""


def draw(path, title, x, curves, scale=""):
    """curves: {name: [(x, y)]}; a y that is no number is left out. scale: commands of gnuplot."""
    data, lines = "", []
    if "logscale y" in scale:
        scale = "set yrange [*:*]; " + scale
    for index, (name, points) in enumerate(curves.items()):
        known = "".join(f"{at} {value}\n" for at, value in points if value == value)
        data += f"$c{index} << EOD\n{known or '0 NA' + chr(10)}EOD\n"
        lines.append(f'$c{index} using 1:2 with linespoints lw 2 pt 7 ps 0.5 title "{name}"')
    script = SCRIPT.format(output=path, title=title, x=x, scale=scale, data=data, lines=", ".join(lines))
    subprocess.run(["gnuplot"], input=script, text=True, check=True, stderr=subprocess.DEVNULL)  # it warns of flat curves
