"""Counts the instructions (callgrind) and system calls (strace) of a request, which do not depend
on the load of the machine, and compares them with those in instructions.tsv.

    instructions.py BUILD [--update]

Each number is the difference between two runs, one with twice as many requests, so that start and
end do not count. Requests have the heads of heads.py in turn, as browsers send them. Fails if a number has grown by
more than GROWTH. With another compiler, only system calls are compared. "make instructions" compares; "make instructions UPDATE=1" also keeps the
new numbers.
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import heads
from processes import Process, end_on_signals

KEPT = Path(__file__).with_suffix(".tsv")
HOST = b"Host: localhost\r\n"
HEADS = [HOST + b"".join(line.encode() + b"\r\n" for line in lines) for lines in heads.heads()]
REQUESTS = 16 * len(HEADS)
TIMES = {"references": 8}  # more requests, since few connections would not cover what start and end vary by
UNCOUNTED = {
    "references": {"epoll_wait"},  # one tells of a connection's end and of the next one, or two do
    "misses": {"newfstatat"},  # files are looked at again each second, and strace takes more or less than that
}
GROWTH = 1.03
DUMP_S = 60  # for callgrind to write its counts
SIZES = {"1k": 1024, "100k": 100 * 1024}
MANY, MANY_PER_DIRECTORY, MANY_ROOM = REQUESTS, 10, "1M"
SITES = {  # the cases with a directory of their own: a file in it
    "ruled": ("_redirects", "".join(f"/old{n}/* /new{n}\n" for n in range(1000)) + "/* /index.html 200\n"),
    "admitted": (".htaccess_global", "Friends\nann:$1$abcdefgh$vdBSIIpG7R8DPkuUogsqU0\n"),
}
RIGHT = b"Authorization: Basic YW5uOnJpZ2h0\r\n"
CHANGED, SINCE = 784111777, b"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
CASES = {  # path, further fields, whether each request has its own connection, and whether it is logged
    "keep-alive": ("1k", b"", False, False),
    "host-alone": ("1k", HOST, False, False),  # heads of one field: what a browser's cost is the difference to keep-alive
    "short-lived": ("1k", b"Connection: close\r\n", True, False),
    "not-modified": ("1k", SINCE, False, False),
    "100k": ("100k", b"", False, False),
    "logged": ("1k", b"", False, True),
    "shown": ("1k", b"", False, False),  # with a status page
    "ruled": ("1k", b"", False, False),  # beside 1,000 rules of _redirects that do not apply
    "admitted": ("1k", RIGHT, False, False),  # with a right password
    "misses": ("many", b"", False, False),  # each of MANY files of a kilobyte in turn, with room for some
    "http2": None,  # over HTTP/2, without TLS
    # HTTP/2 connections that send a header of 4,000 octets and 990 references to it; a request
    # counts as 1,000 octets of these
    "references": None,
}


def answer_of(connection, path, fields):
    """Sends a request. Returns the head and the content of the response."""
    connection.sendall(b"GET /%s HTTP/1.1\r\n%s\r\n" % (path.encode(), fields))
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 20)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += connection.recv(1 << 20)
    return head, body


def frame(kind, flags, stream, payload):
    """Returns an HTTP/2 frame."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def references():
    """Returns a few octets that expand to large headers (HPACK); the server closes the connection
    after the first block."""
    get = b"\x82\x84\x86\x41\x01a"
    literal = b"\x40\x01x\x7f\xa1\x1e" + b"y" * 4000  # name "x" and 4,000 octets, added to the table
    return (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 5, 1, get + literal)
            + b"".join(frame(1, 5, 3 + 2 * n, get + b"\xbe" * 990) for n in range(20)))  # fmt: skip


def flood(port, connections):
    data = references()
    for _ in range(connections):
        with socket.create_connection(("127.0.0.1", port)) as s:
            with contextlib.suppress(ConnectionError):
                s.sendall(data)
                while s.recv(1 << 20):
                    pass


def block(head):
    """Returns a header block with the lines of a head, none of which goes into the table."""
    fields = [line.split(b": ", 1) for line in head.splitlines()]
    literals = [(name.lower(), value) for name, value in fields if name.lower() not in (b"host", b"connection")]
    return b"\x82\x86\x04\x03/1k\x01\x09localhost" + b"".join(b"\0" + text(name) + text(value) for name, value in literals)


def text(octets):
    """Returns a string literal (RFC 7541, section 5.2)."""
    more, length = len(octets) - 127, b""
    while more >= 0:
        length += bytes([more % 128 | (128 if more >= 128 else 0)])
        more = more // 128 if more >= 128 else -1
    return (b"\x7f" + length if length else bytes([len(octets)])) + octets


def over_http2(port, requests):
    """Sends requests on one connection, and reads their responses."""
    blocks = [block(head) for head in HEADS]
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(8, 0, 0, (1 << 30).to_bytes(4)))
        data = b""
        for n in range(requests):
            s.sendall(frame(1, 5, 2 * n + 1, blocks[n % len(blocks)]))
            ended = False
            while not ended:
                data += s.recv(1 << 20)
                while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3]):
                    assert data[3] in (0, 1, 4, 8), data[:9]
                    ended |= data[3] == 0 and data[4] & 1
                    data = data[9 + int.from_bytes(data[:3]):]  # fmt: skip


def many(n):
    """Returns the path of a file."""
    return f"many/{n % MANY // MANY_PER_DIRECTORY}/{n % MANY}"


def ask(port, case, requests):
    """Sends requests, and checks the responses."""
    if case == "references":
        flood(port, requests * 1000 // len(references()))  # a request counts as 1,000 octets
        return
    if case == "http2":
        over_http2(port, requests)
        return
    path, fields, once, _ = CASES[case]
    connection = None
    for n in range(requests):
        if once or not connection:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head, body = answer_of(connection, many(n) if path == "many" else path, fields if fields == HOST else HEADS[n % len(HEADS)] + fields)
        expected = (b"304", 0) if fields == SINCE else (b"200", SIZES.get(path, 1024))
        assert (head[9:12], len(body)) == expected, head
        if once:
            assert connection.recv(1) == b""
            connection.close()


@contextlib.contextmanager
def serving(tracer, root, case):
    """Runs a server with one worker under a tracer, and yields its port. What they write is not in the directory that is
    served: while that changes, names are looked up each time."""
    served = root / "site" / case if case in SITES else root / "site"
    command = [*tracer, root / "gatling", "-c", served, "-i", "127.0.0.1", "-p", "0", "-j", "1"]
    command += ["--sandbox", "off"]  # callgrind compiles code, and writes a file, in the process
    command += [] if CASES[case] and CASES[case][3] else ["-n"]
    command += ["--limit", f"cache={MANY_ROOM}"] if case == "misses" else []
    command += ["--status", f"unix:{root}/status"] if case == "shown" else []
    user = "nobody" if os.geteuid() == 0 else None  # as root it would change its root, as callgrind cannot
    with Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, user=user) as process:
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
                break
        else:
            sys.exit("instructions: the server does not start")
        yield int(found[1])
        process.stop(whole_group=True, limit_s=DUMP_S)  # strace would not forward the signal


def count(root, case, requests):
    """Returns the instructions and system calls of a whole run."""
    with serving(["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={root}/out.%p"], root, case) as port:
        ask(port, case, requests)
    outs = list(root.glob("out.*"))  # of the server, its keeper and others, which do less
    totals = [re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE) for out in outs]
    instructions = max(int(total[1]) for total in totals if total)  # one that was killed has none
    for out in outs:
        out.unlink()
    out = root / "out"
    with serving(["strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", out], root, case) as port:
        ask(port, case, requests)
    calls = {name: int(times) for times, name in re.findall(r"^ *(\d+) (\w+)$", out.read_text(), re.MULTILINE)}
    return instructions, calls["total"] - sum(calls.get(name, 0) for name in UNCOUNTED.get(case, ()))


def measure(build):
    """Returns {case: (instructions, system calls)} of one request."""
    with tempfile.TemporaryDirectory(prefix="gatling-instructions-") as directory:
        root = Path(directory)
        root.chmod(0o777)
        # without debugging information, since valgrind cannot read that of every compiler
        subprocess.run(["strip", "-o", root / "gatling", build / "gatling"], check=True)
        site = root / "site"
        for case, (name, content) in SITES.items():
            (site / case).mkdir(parents=True)
            (site / case / name).write_text(content)
        kilobytes = [*(f"{case}/1k" for case in SITES), *map(many, range(MANY))]
        for name, size in [*SIZES.items(), *((name, 1024) for name in kilobytes)]:
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(b"\0" * size)
            os.utime(site / name, (CHANGED, CHANGED))
        found = {}
        for case in CASES:
            requests = REQUESTS * TIMES.get(case, 1)
            once, twice = (count(root, case, n * requests) for n in (1, 2))
            found[case] = tuple((b - a) / requests for a, b in zip(once, twice))
        return found


def compiler(build):
    """Returns the names of the compilers of the program and its libraries, as recorded in it."""
    comment = subprocess.run(["readelf", "-p", ".comment", build / "gatling"], capture_output=True, text=True, check=True)
    return ", ".join(re.findall(r"\]  (.*)", comment.stdout))


def keep(found, build):
    lines = [f"# {compiler(build)}", "case\tinstructions\tsystem_calls"]
    lines += [f"{case}\t{instructions:.0f}\t{calls:.2f}" for case, (instructions, calls) in found.items()]
    KEPT.write_text("\n".join(lines) + "\n")


def compare(found, build):
    """Prints both tables. Returns whether no number has grown."""
    first, _, *lines = KEPT.read_text().splitlines()
    good, same_compiler = True, first == f"# {compiler(build)}"
    if not same_compiler:
        print(f"instructions: kept for {first[2:]}: comparing system calls alone")
    print(f"{'a request':14}{'instructions':>14}{'kept':>8}{'system calls':>14}{'kept':>8}")
    for line in lines:
        case, instructions, calls = line.split("\t")
        now = found[case]
        grown = now[1] > float(calls) * GROWTH or (same_compiler and now[0] > float(instructions) * GROWTH)
        good &= not grown
        print(f"{case:14}{now[0]:14.0f}{instructions:>8}{now[1]:14.2f}{calls:>8}{'  GROWN' if grown else ''}")
    if not good:
        print("instructions: what has grown for a good reason is kept with make instructions UPDATE=1")
    return good


if __name__ == "__main__":
    end_on_signals()
    program = Path(sys.argv[1])
    counted = measure(program)
    if "--update" in sys.argv:
        keep(counted, program)
    sys.exit(0 if compare(counted, program) else 1)
