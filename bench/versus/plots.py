"""Draws the results of versus.py with gnuplot: two SVGs for each measure, HTTP/1.1 without TLS and
the rest. A case is a group of bars, one for each server, with the minimum and maximum of the rounds
as error bars."""

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
    """Draws rows of (name, a (median, least, most) or None for each column). Makes no file if they
    have no numbers."""
    if not any(v and v[0] == v[0] for _, values in rows for v in values):
        return
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


def names_of(measured):
    return list(dict.fromkeys(name for kept in measured for name in kept))


def plot(directory, results, cases):
    """Makes the files of each measure, and memory.svg if memory was measured."""
    for suffix, clear in (("", True), ("-tls", False)):
        measured = {key: kept for key, kept in results.cases.items() if (cases[key].protocol == "http") == clear}
        servers = names_of(measured.values())
        for measure, title in TITLES.items() if measured else ():
            rows = []
            for key, kept in measured.items():
                values = [kept[name][measure] if name in kept else None for name in servers]
                rows.append((cases[key].title, [v and (statistics.median(v), min(v), max(v)) for v in values]))
            draw(directory / f"{measure.removesuffix('_us')}{suffix}.svg", title, rows, servers)
    if results.memory:
        servers = names_of(results.memory.values())
        rows = [(protocol, [(memory[name],) * 3 if memory.get(name, 0) > 0 else None for name in servers])
                for protocol, memory in results.memory.items()]  # fmt: skip
        draw(directory / "memory.svg", "resident bytes of an idle connection after one request", rows, servers)
