"""The kernel benchmarks: those of bench/suite/run, on this kernel, and of bench/suite/vm, on
others."""

import datetime
import gzip
import platform
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"
TABLE = ".tsv.gz"  # how the names of tables end
RUNS = 5
POINTS = {"small": 1000, "paper": 1000, "vm": 200}  # kept of a run; those of emulated runs hardly scatter
LINKS = ("jumbo", "no-tso", "gro", "no-checksum", "bridge", "vlan", "vxlan", "gre", "ipip", "wireguard")
LINUX = platform.system() == "Linux"
DEFAULT = "epoll" if LINUX else "kqueue"
MECHANISMS = ("epoll", "uring", "sigio", "poll") if LINUX else ("kqueue", "poll")


@dataclass
class Job:
    """A table. program: its path in the build directory; small, paper, vm: how far n goes; vm 0:
    not there; seconds: about how long it takes with small. server: for connbench, a gatling in the
    build directory."""

    name: str
    arguments: str
    small: int
    paper: int
    vm: int
    seconds: float
    program: str = "bench/kbench"
    server: str = ""

    def command(self, size, runs):
        return [*self.arguments.split(), "-n", str(getattr(self, size)), "--runs", str(runs), "--points", str(POINTS[size])]

    def benchmark(self):
        return "http" if self.server else self.arguments.split()[0]

    def sends(self):
        """Returns whether it sends from one network namespace to another."""
        return self.benchmark() in ("stream", "relay", "forward")

    def needs(self):
        """Returns the programs that must be built."""
        return [self.program, *([self.server] if self.server else [])]


def kernel(mechanism, program="bench/kbench"):
    """Returns the path of a program that was built with that mechanism."""
    return f"kernel-{mechanism}/{program}"


def network(name, arguments, vm=0):
    return Job(name, arguments, 20, 100, vm, 14)


def over_links(benchmark, family=""):
    """Returns a short job for each kind of link that supports the family."""
    return [Job(f"{benchmark}-{link}{family and '-ipv6'}", f"{benchmark} {family} --link {link}", 4, 20, 4, 6)
            for link in LINKS if link != "ipip" or not family]  # fmt: skip


JOBS = [
    Job("socket", "socket", 15_000, 19_900, 60_000, 2),
    Job("bind", "bind", 16_000, 28_000, 16_000, 12),
    Job("bind-reuse", "bind --kind reuse", 12_000, 19_900, 0, 12),
    Job("accept", "accept", 15_000, 19_900, 16_000, 9),
    Job("accept-sources", "accept --sources 8", 15_000, 19_900, 60_000, 5),
    Job("fork", "fork", 3_000, 10_000, 0, 4),
    Job("fork-static", "fork", 3_000, 10_000, 2_000, 4, "bench/kbench-static"),
    Job("exec", "fork --kind exec", 1_500, 5_000, 0, 4),
    Job("exec-static", "fork --kind exec", 1_500, 5_000, 500, 3, "bench/kbench-static"),
    Job("spawn", "fork --kind spawn", 1_500, 5_000, 0, 4),
    Job("thread", "fork --kind thread", 3_000, 10_000, 2_000, 3),
    Job("mmap", "mmap", 25_000, 60_000, 25_000, 4),
    Job("files", "files", 10_000, 19_900, 10_000, 4),
    *(Job(f"event-{m}", "event", 15_000, 19_900, 3_000 if m == "poll" else 15_000, 60 if m == "poll" else 2, kernel(m))
      for m in MECHANISMS),
    *(Job(f"http-{m}", "-i 20 -s 2", 9_000, 30_000, 0, 30 if m == "poll" else 8, "bench/connbench", kernel(m, "gatling"))
      for m in (DEFAULT, "poll")),
    *(Job(f"download{'-' + kind if kind != 'memory' else ''}{'-two' if n == 2 else ''}", f"download --kind {kind} --streams {n}",
          300, 1000, 0, 15) for kind in ("memory", "disk", "scattered") for n in (1, 2)),
    network("stream", "stream", vm=10),
    network("stream-iperf3", "stream --kind iperf3"),
    network("stream-ten", "stream --streams 10"),
    network("stream-fifteen", "stream --streams 15"),
    network("stream-thirty", "stream --streams 30"),
    network("stream-ipv6", "stream -6"),
    *(network(f"stream-{link}", f"stream --link {link}", vm=10) for link in LINKS),
    *over_links("stream", "-6"),
    network("udp-empty", "stream --kind udp --size 0"),
    network("udp", "stream --kind udp"),
    network("udp-fragments", "stream --kind udp --size 8000"),
    network("multicast", "stream --kind multicast --streams 4"),
    network("relay-copy", "relay"),
    network("relay-splice", "relay --kind splice"),
    network("relay-ipv6", "relay -6"),
    *over_links("relay"),
    *over_links("relay", "-6"),
    network("forward", "forward"),
    network("forward-ipv6", "forward -6"),
    network("forward-udp", "forward --kind udp --size 0"),
    *over_links("forward"),
    *over_links("forward", "-6"),
]  # fmt: skip
if not LINUX:  # since C libraries may not allow static linking
    JOBS = [job for job in JOBS if not job.program.endswith("-static")]


def table_path(directory, job):
    return directory / f"{job}{TABLE}"


def tables_in(directory):
    """Returns the tables of a result, {name of the job: path}."""
    return {path.name.removesuffix(TABLE): path for path in sorted(directory.glob(f"*{TABLE}"))}


def write_table(path, text):
    """Keeps a table. The same text makes the same file."""
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_table(path):
    """Returns the text of a table. Raises ValueError if it is not compressed, or cut off."""
    try:
        return gzip.decompress(path.read_bytes()).decode()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"not compressed: {error}") from None


def measured(table):
    """Returns whether a table has points. It has none if all of its runs were skipped."""
    return any(line[:1].isdigit() for line in read_table(table).splitlines())


def chosen(only, jobs):
    """Returns the jobs that only names, in the order of jobs. A name is that of one job, or, if no
    job has it, of a benchmark, which means all its jobs. Raises ValueError for an unknown name."""
    wanted = set()
    for name in only.split(",") if only else [job.name for job in jobs]:
        found = [job.name for job in jobs if job.name == name] or [job.name for job in jobs if job.benchmark() == name]
        if not found:
            raise ValueError(f"there is no {name}: {', '.join(job.name for job in jobs)}")
        wanted.update(found)
    return [job for job in jobs if job.name in wanted]


def dated(name):
    """Returns (NAME, DATE, N) for a directory NAME-DATE[.N] of results_directory(), or None if its
    name has no date."""
    match = re.match(r"(.+)-(\d{4}-\d\d-\d\d)(?:\.(\d+))?$", name)
    return (match[1], match[2], int(match[3] or 1)) if match else None


def host_results(within=None):
    """Makes a new directory for results of this host and kernel."""
    return results_directory(f"{platform.node() or 'host'}-{platform.release()}", within)


def results_directory(name, within=None):
    """Makes a new directory NAME-DATE. If that exists, a number is appended."""
    name, within = f"{name}-{datetime.date.today()}", within or RESULTS
    for n in range(1, 1000):
        path = within / (name if n == 1 else f"{name}.{n}")
        if not path.exists():
            path.mkdir(parents=True)
            return path
    raise ValueError(f"{within} is full of {name}")
