"""hold: how many connections were answered, and why not all."""

import subprocess

from origin import Origin

NOT_FOUND = b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n"


def hold(build, *arguments, status=0):
    """Its row, or None, and what it says on stderr."""
    done = subprocess.run([build / "bench" / "hold", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    heads, *rows = (line.split("\t") for line in done.stdout.splitlines()) if done.stdout else ([],)
    return (dict(zip([heads[0][2:], *heads[1:]], *rows)) if rows else None), done.stderr


def port_of(origin):
    return origin.url.split(":")[2][:-1]


def test_why_the_first_request_has_no_answer(build):
    with Origin(lambda *_: NOT_FOUND) as origin:
        _, words = hold(build, port_of(origin), "/k", status=1)
        assert words == f"hold: no answer from {origin.url}k: request: the status of the answer is 404, not 200\n"
