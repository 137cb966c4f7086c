"""hold: how many connections were answered, and why not all of them."""

import subprocess
import time

import pytest

from origin import NOT_FOUND, OK, Origin


def hold(build, *arguments, status=0):
    """Returns its row or None, and its messages on stderr."""
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


@pytest.mark.parametrize("net", ["127.0.0.1/40", "nowhere", "192.0.2.7"])
def test_connections_come_from_addresses_of_this_machine(build, net):
    with Origin() as origin:
        _, words = hold(build, "--source", net, port_of(origin), "/", status=2)
        row, _ = hold(build, "-n", 2, "--source", "127.0.0.9", port_of(origin), "/")
    assert words.startswith("hold: --source ") and words.count("\n") == 1
    assert row["answered_again"] == "2"


def test_memory_of_a_process_that_is_not_there_is_refused(build):
    with subprocess.Popen(["true"]) as ended:
        pass
    with Origin() as origin:
        _, words = hold(build, "-n", 2, "-p", ended.pid, port_of(origin), "/", status=2)
    assert words.startswith(f"hold: -p: there is no process {ended.pid},") and words.count("\n") == 1


def test_a_process_that_has_ended_has_no_memory(build):
    """The server's process ends when the fourth request comes; the first one warms up."""
    with subprocess.Popen(["sleep", "60"]) as sleeping:

        def behave(_, number, __):
            if number == 4:
                sleeping.kill()
                sleeping.wait()
            return OK

        with Origin(behave) as origin:
            row, _ = hold(build, "-n", 3, "-p", sleeping.pid, port_of(origin), "/")
    assert row["rss_bytes_each"] == "-"


def test_what_is_closed_in_between_was_not_answered_again(build):
    """The server closes the second of three connections after its answer; one connection warmed
    up."""

    def behave(connection, number, _):
        if number != 3:
            return OK
        connection.sendall(OK)

    with Origin(behave) as origin:
        row, words = hold(build, "-n", 3, port_of(origin), "/", status=3)
    assert (row["asked"], row["open"], row["answered_again"]) == ("3", "3", "2")
    assert words == "hold: connection 2 of process 0, asked again: read: Connection reset by peer\n"


@pytest.mark.decided
def test_a_server_that_answers_no_more_is_not_waited_for_on_each_connection(build):
    """Of five, the second is not answered again."""
    with Origin(lambda _, number, __: OK if number <= 7 else time.sleep(100)) as origin:
        row, words = hold(build, "-n", 5, port_of(origin), "/", status=3)
    assert row["answered_again"] == "1" and float(row["seconds_to_ask_again"]) < 40
    assert words == "hold: connection 2 of process 0, asked again: read: Connection timed out\n"


@pytest.mark.parametrize(
    "arguments, named",
    [(["80"], "a port and a path"), (["80", "k"], "begins with /"), (["99999", "/"], "'99999'"), (["-p", "x", "80", "/"], "'x'"),
     (["-n", "0", "80", "/"], "-n"), (["-z", "80", "/"], "-z")],
)  # fmt: skip
def test_bad_input_is_named_in_one_line(build, arguments, named):
    row, words = hold(build, *arguments, status=2)
    assert row is None and words.count("\n") == 1 and words.startswith("hold: ") and named in words
