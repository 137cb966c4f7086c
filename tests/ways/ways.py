"""How large the code is, and how many files a reader goes through who follows one request: "make ways", or

    python3 tests/ways/ways.py [CHECKOUT] [--show WAY]

prints the lines of code of each room, without comments and blank lines; the functions that are longer than LINES_MAX; and
for each of WAYS in how many files of gatling/ and io/ the worker is for that one request, how often it goes from one file
to another, by a call or back, how deep the calls go, and how many calls and turns of the loop there are. It counts from when
the worker wakes to when it sleeps and the client has what it waits for. Timers, and what the kernel takes at a time, add to
that: of TIMES requests it prints the one that changes files least often; "cold 20 MB" and "slow reader" still differ by a
fifth. --show prints the calls of one way instead.

The server is built without optimisation, so that all functions exist, and trace.c notes when they are entered and left. An
inline function belongs to its header.
"""

import argparse
import collections
import mmap
import os
import re
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "wire")]

from gatling import Connection, Root, Server, eventually, trusting, certificate  # noqa: E402
from http2 import Http2  # noqa: E402

LINES_MAX = 80
TIMES = 5
WARM = 5  # equal requests before the one that counts, where something is to be known
SMALL, LARGE = b"x" * 1000, 20 << 20
RECEIVE_BUFFER = 64 << 10  # of the slow reader
APPLICATION = "application.test"  # the host whose requests are passed on
TRACE_NOTES = 16 << 20
RETURN = 1 << 31
# DWARF 4: with 5, addr2line takes the first function of a header for one of the file that includes it.
FLAGS = "-O0 -g1 -gdwarf-4 -finstrument-functions -finstrument-functions-exclude-file-list=/usr/"


# --- the size of the code ---


def sources(top):
    names = subprocess.run(["git", "ls-files", "gatling", "io", "bench"], cwd=top, check=True, capture_output=True, text=True).stdout.split()
    return [name for name in names if name.endswith((".c", ".h")) and (top / name).exists()]


def code(text):
    """Returns the text without its comments."""
    literal_or_comment = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/'
    return re.sub(literal_or_comment, lambda found: found[0] if found[0][0] in "\"'" else " ", text, flags=re.DOTALL)


def lines_of(text):
    return sum(1 for line in code(text).splitlines() if line.strip())


def functions(text):
    """Returns the names of functions and their lines, from the first of the definition to the brace at its end."""
    lines, found, begun = text.splitlines(), [], None
    for number, line in enumerate(lines):
        if re.match(r"[A-Za-z_].*\(", line):
            begun = number
        if line == "}" and begun is not None:
            name = re.search(r"(\w+)\((?!\()", re.sub(r"__attribute__\(\(.*?\)\)", "", " ".join(lines[begun : begun + 3])))
            found.append((name[1] if name else lines[begun], number - begun + 1))
        if line in ("}", "};") or line.endswith(";") and not line.startswith(("\t", " ")):
            begun = None
    return found


def print_sizes(top):
    rooms, long = collections.defaultdict(collections.Counter), []
    for name in sources(top):
        text = (top / name).read_text()
        folder = str(Path(name).parent)
        rooms[folder if folder.startswith("gatling") else folder.split("/")[0]][name[-1]] += lines_of(text)
        long += [(lines, function, name) for function, lines in functions(text) if lines > LINES_MAX]
    rooms["gatling/ and io/ together"] = sum((lines for room, lines in rooms.items() if room != "bench"), collections.Counter())
    print("lines of code\nin .c\tin .h\troom")
    for room, lines in rooms.items():
        print(lines["c"], lines["h"], room, sep="\t")
    print(f"\nfunctions over {LINES_MAX} lines: {len(long)}")
    for lines, function, name in sorted(long, reverse=True):
        print(f"{lines}\t{function}() of {name}")


# --- the ways ---


def build(top):
    """Returns the directory of a build whose functions are traced."""
    made = top / "build/ways"
    made.mkdir(parents=True, exist_ok=True)
    (made / "gatling").unlink(missing_ok=True)  # linked anew, in case trace.c has changed
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-I", top, "-c", "-o", made / "trace.o", HERE / "trace.c"],
                   check=True)  # fmt: skip
    subprocess.run(["make", "-s", "-C", top, "BUILD=build/ways", "LTO=", "HARDEN=", "HARDEN_LINK=", "WARNINGS=-w", f"CFLAGS={FLAGS}", "LDFLAGS=build/ways/trace.o",
                    "build/ways/gatling"], check=True)  # fmt: skip
    return made


class Trace:
    """What all threads of a server have noted."""

    def __init__(self, program, room):
        self.program = program
        self.path = room.write("trace", b"", mode=0o666)
        os.truncate(self.path, 8 + 8 * TRACE_NOTES)
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.places = {}  # of functions: (file, name)

    def clear(self):
        self.memory[:8] = bytes(8)
        self.notes, self.read = collections.defaultdict(list), 0

    def __len__(self):
        (notes,) = struct.unpack_from("=Q", self.memory)
        assert notes <= TRACE_NOTES, "TRACE_NOTES is too small"
        return notes

    def of(self, thread):
        """Returns (place in the trace, function, whether it returns) for each note of a thread."""
        end = len(self)
        for function, who in struct.iter_unpack("=II", self.memory[8 + 8 * self.read : 8 + 8 * end]):
            if not who:
                break  # not yet written
            self.notes[who & ~RETURN].append((self.read, function, bool(who & RETURN)))
            self.read += 1
        return self.notes[thread]

    def resolve(self, wanted):
        """Returns {function: (file, name)}."""
        lacking = sorted(set(wanted) - self.places.keys())
        if lacking:
            start = int(re.search(r"^(\w+) . __executable_start$", self.run("nm"), re.MULTILINE)[1], 16)
            said = self.run("addr2line", "-f", *(hex(start + function) for function in lacking), option="-e").splitlines()
            for function, name, place in zip(lacking, said[::2], said[1::2]):
                found = re.search(r"(?:.*/)?((?:gatling|io)/\S*?\.[ch])(?=:)", place.rsplit("/build/", 1)[-1])
                self.places[function] = (found[1] if found else place, name)
        return self.places

    def run(self, program, *arguments, option=None):
        command = [program, *([option] if option else []), self.program, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


Way = collections.namedtuple("Way", "files changes depth calls turns lines")  # lines: of --show


class Traced:
    """A server with one worker, whose notes are read while it sleeps."""

    def __init__(self, made, trace, root, *flags):
        self.trace = trace
        trace.clear()
        cert, key = certificate()
        os.environ["WAYS_TRACE"] = str(trace.path)
        self.server = Server(made, root, "-j", "1", "--sandbox", "off", "--cert", cert, "--key", key, "--tls-port", "0", *flags, stdout=subprocess.DEVNULL)
        self.worker = eventually(self._worker)

    def __enter__(self):
        return self

    def __exit__(self, *of_error):
        self.server.__exit__(*of_error)

    def _worker(self):
        """Returns the thread that waits for events."""
        for thread in self.server.thread_ids():
            if self._waits(thread):
                return thread
        return None

    def _waits(self, thread):
        """Returns whether a thread sleeps in the event mechanism."""
        state = Path(f"/proc/{self.server.pid}/task/{thread}/stat").read_text().rsplit(")", 1)[1].split()[0]
        notes = self.trace.of(thread) if state == "S" else []
        if not notes or notes[-1][2]:
            return False
        file, _ = self.trace.resolve({notes[-1][1]})[notes[-1][1]]
        return file == "io/epoll.c"

    def sleeps(self):
        """Waits until the worker sleeps. Returns how much has been noted."""
        eventually(lambda: self._waits(self.worker))
        return len(self.trace)

    def wakes(self, since):
        """Returns whether the worker has noted anything since."""
        return any(at >= since for at, _, _ in self.trace.of(self.worker))

    def way(self, since):
        """Returns the way since then."""
        self.sleeps()
        notes = self.trace.of(self.worker)
        places = self.trace.resolve({function for _, function, _ in notes})
        stack, files, changes, depth, calls, turns, here, lines = [], set(), 0, 0, 0, 0, None, []
        for at, function, returns in notes:
            if returns:
                stack.pop()
            else:
                stack.append(function)
            there = places[stack[-1]][0] if stack else None
            if at >= since:
                calls += not returns
                turns += returns and places[function][1] == "io_wait"
                changes += there != here
                depth = max(depth, len(stack))
                files.add(there)
                if not returns:
                    lines.append(f"{'  ' * len(stack)}{places[function][1]}  {there}")
            here = there
        return Way(len(files), changes, depth, calls, turns, lines)


def get(connection, path="/small", **options):
    response = connection.get(path, **options)
    assert response.status == 200, response.status
    return response


def known(traced, _):
    with Connection(("127.0.0.1", traced.server.plain_port)) as connection:
        for _ in range(WARM):
            get(connection)
        since = traced.sleeps()
        get(connection)
        return traced.way(since)


def over_http2(traced, _):
    with Http2(argparse.Namespace(plain_port=traced.server.tls_port), tls=trusting(alpn=("h2",))) as connection:
        for _ in range(WARM):
            connection.answers(connection.ask("/small"))
        since = traced.sleeps()
        (answer,) = connection.answers(connection.ask("/small"))
        assert answer.status == 200
        return traced.way(since)


def cold(traced, n):
    with Connection(("127.0.0.1", traced.server.plain_port)) as connection:
        get(connection)
        since = traced.sleeps()
        assert len(get(connection, f"/large{n}.zip").body) == LARGE
        return traced.way(since)


def proxied(traced, _):
    with Connection(("127.0.0.1", traced.server.plain_port)) as connection:
        for _ in range(WARM):
            get(connection, "/page", host=APPLICATION)
        since = traced.sleeps()
        get(connection, "/page", host=APPLICATION)
        return traced.way(since)


def slow(traced, _):
    """The client takes only what makes the worker go on once."""
    with Connection(("127.0.0.1", traced.server.plain_port), receive_buffer=RECEIVE_BUFFER) as connection:
        get(connection, "/large.zip")
        since = traced.sleeps()
        connection.send(b"GET /large.zip HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: traced.wakes(since))
        stalled = traced.sleeps()
        while not traced.wakes(stalled):
            connection.socket.recv(RECEIVE_BUFFER)
        return traced.way(since)


WAYS = {
    "known GET": known,
    "HTTP/2 over TLS": over_http2,
    "cold 20 MB": cold,
    "proxied": proxied,
    "slow reader": slow,
}


def upstream():
    """Returns a listening socket whose connections are answered as a kept one is, each request with a short page."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection):
        while connection.recv(1 << 16):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(SMALL), SMALL))

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def write_site(root, port):
    root.write("small", SMALL)
    root.write(f"{APPLICATION}/_redirects", f"/* http://127.0.0.1:{port}/:splat 200!\n".encode())
    for name in ("large.zip", *(f"large{n}.zip" for n in range(TIMES))):
        with root.write(name, b"x" * LARGE).open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def take(top, names):
    """Takes ways through a checkout. Yields each name and the way."""
    made = build(top)
    root, room, listener = Root(), Root(), upstream()
    write_site(root, listener.getsockname()[1])
    with Traced(made, Trace(made / "gatling", room), root, "--upstream", "127.0.0.1") as traced:
        for name in names:
            yield name, min((WAYS[name](traced, n) for n in range(TIMES)), key=lambda way: way.changes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=TOP)
    parser.add_argument("--show", metavar="WAY", choices=WAYS)
    chosen = parser.parse_args()
    checkout = chosen.checkout.resolve()
    if chosen.show:
        for _, taken in take(checkout, [chosen.show]):
            print(*taken.lines, sep="\n")
    else:
        print_sizes(checkout)
        print("\nfiles\tchanges\tdepth\tcalls\tturns\tway")
        for way_name, taken in take(checkout, WAYS):
            print(*taken[:-1], way_name, sep="\t", flush=True)
