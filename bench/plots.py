"""Draws what versus.py has measured, with gnuplot: an SVG for each measure, a group of bars for each case, a bar for
each server, from the least to the most of the rounds as its error."""

import statistics
import subprocess

TITLES = {
    "rate": "requests a second",
    "cpu_us": "processor time of the server a request, us",
    "p50_us": "half of the answers within, us",
    "p99_us": "99 % of the answers within, us",
    "p999_us": "99.9 % of the answers within, us",
}
WIDTH, WIDTH_OF_A_CASE, HEIGHT = 320, 110, 480

SCRIPT = """
set terminal svg size {width},{height} font "sans-serif,12" background "white"
set output "{output}"
set title "{title}"
set style data histogram
set style histogram errorbars gap 1 lw 1
set errorbars 0.5 lc rgb "#333333"
set style fill solid 0.8 noborder
{scale}
set grid y lc rgb "#dddddd"
set key outside right top
set xtics nomirror rotate by -30
set ytics nomirror
set border 3
set datafile missing "NA"
plot {bars}
"""


def draw(path, title, rows, columns, scale="set logscale y"):
    """rows: (name, one (median, least, most) or None for each of columns)."""
    data = path.with_suffix(".dat")
    with open(data, "w", encoding="utf-8") as out:
        for name, values in rows:
            print(f'"{name}"', *(" ".join(map(str, v)) if v else "NA NA NA" for v in values), sep="\t", file=out)
    bars = ", ".join(
        f'"{data if n == 0 else ""}" using {2 + 3 * n}:{3 + 3 * n}:{4 + 3 * n}:xtic(1) title "{column}"'
        for n, column in enumerate(columns)
    )
    script = SCRIPT.format(width=WIDTH + WIDTH_OF_A_CASE * len(rows), height=HEIGHT, output=path, title=title, bars=bars,
                           scale=scale)  # fmt: skip
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    data.unlink()


def plot(directory, results, cases):
    """A file of each measure, and memory.svg, if that was measured."""
    servers = list(dict.fromkeys(name for kept in results.cases.values() for name in kept))
    for measure, title in TITLES.items():
        rows = []
        for key, kept in results.cases.items():
            values = [kept[name][measure] if name in kept else None for name in servers]
            rows.append((cases[key].title, [v and (statistics.median(v), min(v), max(v)) for v in values]))
        draw(directory / f"{measure.removesuffix('_us')}.svg", title, rows, servers)
    if results.memory:
        row = [(value, value, value) for value in results.memory.values()]
        draw(directory / "memory.svg", "resident bytes of an idle connection", [("after one request", row)],
             list(results.memory), "set yrange [0:*]")  # fmt: skip
