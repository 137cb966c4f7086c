"""crowd: how pages end is counted, from the time at which they were due."""

import contextlib
import re
import signal
import subprocess
import threading
import time

import pytest

from gatling import Root, Server, eventually
from origin import NOT_FOUND, OK, Origin, reset

pytestmark = pytest.mark.decided

OUTCOMES = ["answered", "refused", "cut", "late", "failed"]
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
LAST = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


NOBODY_SERVED = (1, 3)


def crowd(build, *arguments, status=(0, 3), **options):
    """Returns the totals and the seconds. Status 3: the clients were late, as may happen beside
    other tests."""
    done = subprocess.run([build / "bench" / "crowd", *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          check=False, **options)  # fmt: skip
    assert done.returncode in status, done.stdout + done.stderr
    return parse(done.stdout)


def parse(output):
    lines = [line.split("\t") for line in output.splitlines()]
    totals = {line[0][2:]: line[1] for line in lines if line[0].startswith("# ")}
    heads = next(line for line in lines if line[0] == "# second")
    seconds = [dict(zip(["second", *heads[1:]], line)) for line in lines if not line[0].startswith("#")]
    return totals, seconds


def ended(totals):
    return {outcome: int(totals[outcome]) for outcome in OUTCOMES if int(totals[outcome])}


def seen(visitors, totals):
    """Returns whether the server saw all visitors, except the last ones, which may have left
    before."""
    return int(totals["arrived"]) - 5 <= len(visitors) <= int(totals["arrived"])


def path_of(request):
    return request.split(b" ")[1].decode()


def test_a_visitor_asks_for_one_thing_after_the_other_on_one_connection(build):
    asked, lock = {}, threading.Lock()

    def behave(connection, _, request):
        with lock:
            asked.setdefault(connection, []).append(path_of(request))
        return OK

    with Origin(behave) as origin:
        totals, _ = crowd(build, "-R", 20, "-d", 2, "-p", 2, "--think", 0, origin.url + "page", origin.url + "a", origin.url + "b")
    visits = list(asked.values())
    assert len(visits) > 10 and seen(visits, totals)
    whole = ["/page", "/a", "/b"] * 2
    assert all(visit == whole[: len(visit)] for visit in visits) and whole in visits
    assert list(ended(totals)) == ["answered"]
    assert int(totals["answered"]) <= int(totals["pages"]) <= 2 * len(visits) and totals["reopened"] == "0"


def test_nobody_asks_for_the_next_asset_before_the_answer_to_the_last(build):
    ahead = []

    def behave(connection, *_):
        connection.sendall(OK[:-1])
        connection.settimeout(0.05)
        with contextlib.suppress(TimeoutError):
            ahead.append(connection.recv(1))
        connection.settimeout(None)
        return OK[-1:]

    with Origin(behave) as origin:
        totals, _ = crowd(build, "-R", 10, "-d", 2, origin.url, origin.url, origin.url)
    assert "answered" in ended(totals) and not [byte for byte in ahead if byte]


def test_visitors_come_from_addresses_of_their_own(build):
    with Origin() as origin:
        totals, _ = crowd(build, "-R", 50, "-d", 1, origin.url)
    addresses = [address for address, _ in origin.peers]
    assert len(set(addresses)) == len(addresses) and seen(addresses, totals)
    assert all(re.fullmatch(r"127\.1\.0\.\d+", address) for address in addresses)


def once(answer):
    """Sends the answer, if any, and closes."""

    def behave(connection, *_):
        connection.sendall(answer)

    return behave


def on_asset(behave):
    return lambda connection, number, request: behave(connection, number, request) if path_of(request) == "/asset" else OK


def broken_off(connection, *_):
    connection.sendall(OK[:-1])
    reset(connection)


@pytest.mark.parametrize(
    "behave,outcome",
    [
        (once(b""), "refused"), (lambda connection, *_: reset(connection), "refused"), (lambda *_: BUSY, "refused"),
        (lambda *_: BUSY.replace(b"503", b"429"), "refused"), (once(OK[:-1]), "cut"), (once(OK[:9]), "cut"), (broken_off, "cut"),
        (on_asset(lambda *_: BUSY), "cut"), (on_asset(once(b"")), "cut"), (once(OK), "cut"),
        (lambda *_: NOT_FOUND, "failed"), (lambda *_: b"hello", "failed"), (lambda *_: OK + OK, "failed"),
    ],
    ids=["closes", "resets", "503", "429", "half an answer", "half a head", "resets in an answer", "503 for an asset",
         "closes before an asset", "closes after the page", "404", "not HTTP", "too much"],
)  # fmt: skip
def test_a_page_counts_as_what_became_of_it(build, behave, outcome):
    with Origin(behave) as origin:
        totals, _ = crowd(build, "-R", 30, "-d", 2, origin.url + "page", origin.url + "asset", status=NOBODY_SERVED)
    assert list(ended(totals)) == [outcome] and ended(totals)[outcome] >= int(totals["pages"]) - 3
    assert totals["goodput"] == "0.0" and totals["p99_ms"] == "NA"
    assert ("failed_first" in totals) == (outcome == "failed")


def test_why_a_page_failed_is_said(build):
    with Origin(lambda *_: NOT_FOUND) as origin:
        url = origin.url + "page"
        totals, _ = crowd(build, "-R", 30, "-d", 1, url, status=NOBODY_SERVED)
    assert totals["failed_first"] == f"{url}: status 404"


def over_at(answer):
    return lambda *_: time.sleep(1) or answer


@pytest.mark.parametrize(
    "behave, arguments, why",
    [
        (lambda *_: BUSY, [], "they were refused by the server of {url}"), (once(OK[:-1]), [], "they were cut off by the server of {url}"),
        (lambda *_: NOT_FOUND, [], "{url}: status 404"),
        (over_at(OK), ["--patience", "0.2"], "none came within --patience"),
        (over_at(OK), [], "all were under way at the end: make -d longer than --patience"),
    ],
    ids=["refused", "cut", "failed", "late", "under way"],
)  # fmt: skip
def test_why_nobody_was_served_is_said(build, behave, arguments, why):
    """Unless the clients were late, which is said instead."""

    def run():
        done = subprocess.run([build / "bench" / "crowd", "-R", "30", "-d", "1", *arguments, url], capture_output=True, text=True,
                              timeout=60, check=False)  # fmt: skip
        return done.returncode != 3 and done

    with Origin(behave) as origin:
        url = origin.url
        done = eventually(run, 60)
    assert done.returncode == 1 and done.stderr == f"crowd: no page was answered: {why.format(url=url)}\n"


def test_a_crowd_that_was_served_is_no_error(build):
    """One page was answered."""
    with Origin(lambda _, number, __: OK if number == 1 else BUSY) as origin:
        crowd(build, "-R", 30, "-d", 1, origin.url)


def test_a_server_that_does_not_listen_refuses_everybody(build):
    with Origin() as origin:
        url = origin.url
        origin.refuse()
        totals, _ = crowd(build, "-R", 30, "-d", 1, url, status=NOBODY_SERVED)
    assert ended(totals) == {"refused": int(totals["arrived"])}


def test_who_waits_too_long_leaves(build):
    over = threading.Event()
    with Origin(lambda *_: over.wait(60) and None) as origin:
        totals, seconds = crowd(build, "-R", 30, "-d", 3, "--patience", 0.5, origin.url, status=NOBODY_SERVED)
        over.set()
    assert list(ended(totals)) == ["late"]
    assert int(totals["open"]) < int(totals["arrived"]) / 2 and int(seconds[0]["arrived"]) > 10


def test_an_answer_after_the_patience_is_none(build):
    def behave(*_):
        time.sleep(0.52)
        return OK

    with Origin(behave) as origin:
        totals, _ = crowd(build, "-R", 20, "-d", 3, "--patience", 0.5, origin.url, status=NOBODY_SERVED)
    assert list(ended(totals)) == ["late"]


def test_a_page_takes_as_long_as_all_of_it(build):
    def behave(*_):
        time.sleep(0.1)
        return OK

    with Origin(behave) as origin:
        totals, _ = crowd(build, "-R", 20, "-d", 2, origin.url, origin.url, origin.url)
    assert 300 <= float(totals["p50_ms"]) <= float(totals["p99_ms"])


def test_visitors_come_although_nobody_is_answered_and_their_wait_counts(build):
    started = []

    def behave(*_):
        started.append(time.monotonic())
        time.sleep(max(0, started[0] + 1.5 - time.monotonic()))
        return OK

    with Origin(behave) as origin:
        totals, seconds = crowd(build, "-R", 60, "-d", 3, origin.url)
    assert seconds[0]["answered"] == "0" and all(int(second["arrived"]) > 30 for second in seconds)
    assert list(ended(totals)) == ["answered"]
    assert float(seconds[1]["p99_ms"]) > 1200 and float(seconds[1]["p50_ms"]) > 300  # up to 1.5 s, and 0 after that


def test_a_connection_closed_between_pages_is_opened_again(build):
    """The server closes silently, immediately or when the next page is requested; or it announces
    it, after the page or in it."""

    def silently(connection, *_):
        connection.sendall(OK)

    def at_the_next(connection, *_):
        connection.sendall(OK)
        connection.recv(65536)

    for assets, behave in ((0, silently), (0, at_the_next), (0, lambda *_: LAST), (2, once(LAST))):
        with Origin(behave) as origin:
            totals, _ = crowd(build, "-R", 20, "-d", 2, "-p", 2, "--think", 0.1, *[origin.url] * (1 + assets))
        assert list(ended(totals)) == ["answered"] and int(totals["answered"]) > int(totals["arrived"])
        assert int(totals["reopened"]) > 5 * (1 + assets)


def test_a_second_refusal_after_an_idle_connection_was_closed_counts(build):
    pages, lock = {}, threading.Lock()

    def behave(connection, *_):
        with lock:
            source = connection.getpeername()[0]
            pages[source] = pages.get(source, 0) + 1
            first = pages[source] == 1
        return OK if first else None

    with Origin(behave) as origin:
        totals, _ = crowd(build, "-R", 20, "-d", 2, "-p", 2, "--think", 0, "--source", "127.1.0.7", origin.url)
    assert set(ended(totals)) == {"answered", "refused"} and totals["answered"] == "1"


def test_half_a_request_is_sent_and_the_connection_held(build):
    with Origin() as origin:
        totals, seconds = crowd(build, "-R", 20, "-d", 2, "--half", 100, origin.url)
    assert int(totals["arrived"]) > 10 and totals["pages"] == totals["expelled"] == "0"
    assert origin.requests == 0 and seen(origin.peers, totals) and seconds[-1]["open"] == totals["arrived"]
    assert {address for address, _ in origin.peers} <= {f"127.1.0.{n}" for n in range(1, 17)}


def test_hostile_connections_that_are_closed_are_counted(build):
    with Origin(accepted=lambda connection: connection.shutdown(2)) as origin:
        totals, _ = crowd(build, "-R", 20, "-d", 3, "--half", 50, "--slow", 50, origin.url)
    assert int(totals["expelled"]) > int(totals["arrived"]) / 2 and not ended(totals)


def test_a_slow_reader_asks_for_everything_and_hardly_reads(build):
    sent, asked, waited = [], {}, []

    def behave(connection, _, request):
        if path_of(request) == "/a":
            asked[connection] = time.monotonic()
            return OK
        waited.append(time.monotonic() - asked[connection])
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            connection.sendall(OK.replace(b": 5", b": 8000005"))
            while True:
                sent.append(connection.send(b"x" * 4096))
        return b""

    with Origin(behave) as origin:
        totals, _ = crowd(build, "-R", 10, "-d", 3, "--slow", 100, origin.url + "a", origin.url + "b")
    assert totals["pages"] == "0" and not ended(totals) and len(waited) > 10
    assert 0 < sum(sent) < 4_000_000 * len(waited) and sum(waited) / len(waited) < 0.5  # it reads once a second


def test_the_shares_of_hostile_visitors(build):
    with Origin() as origin:
        totals, _ = crowd(build, "-R", 500, "-d", 2, "--slow", 20, "--half", 30, origin.url)
    assert 0.4 < int(totals["pages"]) / int(totals["arrived"]) < 0.6


def test_the_seconds_after_the_warm_up_add_up(build, plain):
    root = Root({"page": b"x" * 5000, "asset": b"y" * 20_000})
    with Server(plain, root, "-j", "2", "-n") as server:
        url = f"http://127.0.0.1:{server.port}/"
        totals, seconds = crowd(build, "-R", 300, "-d", 2, "-w", 1, "-p", 3, "--think", 0.2, url + "page", url + "asset")
    root.remove()
    assert [second["second"] for second in seconds] == ["1", "2", "3"] and totals["seconds"] == "2"
    for name in ("arrived", "pages", *OUTCOMES, "reopened", "expelled"):
        assert int(totals[name]) == sum(int(second[name]) for second in seconds[1:]), name
    assert list(ended(totals)) == ["answered"] and float(totals["goodput"]) == int(totals["answered"]) / 2
    assert 400 < int(totals["arrived"]) < 800 < int(totals["answered"])
    assert 0 < float(totals["p50_ms"]) <= float(totals["p99_ms"]) and totals["open"] == seconds[-1]["open"]


def narrow_crowd(build, url):
    command = ["prlimit", "--nofile=60:60", build / "bench" / "crowd", "-R", "200", "-d", "1", "-t", "1", url]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
    return done, parse(done.stdout)[0]


def test_who_has_left_makes_room_for_others(build):
    with Origin() as origin:
        _, totals = narrow_crowd(build, origin.url)
    assert int(totals["answered"]) > 100 and "could not come" not in totals.get("limit", "")


def test_its_own_limit_is_said(build):
    over = threading.Event()
    with Origin(lambda *_: over.wait(60) and None) as origin:
        done, totals = narrow_crowd(build, origin.url)
        over.set()
    missing = int(totals["arrived"]) - int(totals["pages"])
    assert done.returncode == 3 and re.match(rf"{missing} visitors could not come: .*-t", totals["limit"]), done.stdout
    assert re.fullmatch(r"crowd: the client was the limit: [^\n]+\n", done.stderr)
    assert int(totals["open"]) < 60 and missing > 0


def test_a_client_without_processor_time_says_so(build):
    """It is stopped for a while."""
    with Origin() as origin:
        with subprocess.Popen([build / "bench" / "crowd", "-R", "50", "-d", "2", origin.url], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
            while not origin.requests:
                time.sleep(0.01)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.5)
            process.send_signal(signal.SIGCONT)
            output, error = process.communicate(timeout=60)
    totals, _ = parse(output)
    assert process.returncode == 3 and float(totals["lateness_p99_ms"]) > 100 and float(totals["p99_ms"]) > 100
    assert "late" in error and "late" in totals["limit"]


def test_the_lateness_of_the_client_counts_for_the_second_page_too(build):
    """It is stopped while a visitor thinks, until after that. With this seed, two visitors arrive
    in time."""
    asked = threading.Event()
    with Origin(lambda *_: asked.set() or OK) as origin:
        with subprocess.Popen([build / "bench" / "crowd", "-R", "0.1", "-d", "6", "-t", "1", "-p", "2", "--think", "1.5", origin.url],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # fmt: skip
            assert asked.wait(60)
            time.sleep(0.2)  # its answer has been read
            process.send_signal(signal.SIGSTOP)
            time.sleep(2.5)
            process.send_signal(signal.SIGCONT)
            totals, _ = parse(process.communicate(timeout=60)[0])
    assert ended(totals).get("answered", 0) >= 2 and float(totals["p99_ms"]) > 500


def test_an_interrupted_run_ends_with_what_it_has(build):
    with Origin() as origin:
        with subprocess.Popen([build / "bench" / "crowd", "-R", "50", "-d", "100", origin.url], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:  # fmt: skip
            while (line := process.stdout.readline()).startswith("#"):
                pass
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=20)
    assert process.returncode in (0, 3) and line.startswith("1\t") and "# goodput\t" in rest and "\n# interrupted\tyes\n" in rest


def test_a_crowd_that_nobody_interrupts_does_not_say_so(build):
    with Origin() as origin:
        assert "interrupted" not in crowd(build, "-d", 1, origin.url)[0]


def test_a_crowd_that_nobody_reads_leaves(build):
    with Origin() as origin, open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([build / "bench" / "crowd", "-R", "50", "-d", "1000", origin.url], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode in (1, 3) and "crowd: cannot write the report: No space left on device\n" in done.stderr


@pytest.mark.parametrize(
    "arguments,named",
    [
        ([], "URL"), (["-R", "0", "http://127.0.0.1/"], "-R"), (["-d", "0", "http://127.0.0.1/"], "-d"), (["-t", "x", "http://127.0.0.1/"], "'x'"),
        (["--slow", "60", "--half", "50", "http://127.0.0.1/"], "100 percent"), (["--source", "x", "http://127.0.0.1/"], "--source"),
        (["--patience", "0", "http://127.0.0.1/"], "--patience"), (["nohost"], "nohost"), (["https://127.0.0.1/"], "TLS"),
        (["http://127.0.0.1:1/", "http://127.0.0.1:2/"], "not on the server"), (["--source", "::1", "http://127.0.0.1/"], "--source"),
        (["--source", "192.0.2.1", "http://127.0.0.1/"], "--source"),
        (["-z", "http://127.0.0.1/"], "-z"),
    ],
)  # fmt: skip
def test_bad_input_is_named_in_one_line(build, arguments, named):
    done = subprocess.run([build / "bench" / "crowd", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stdout == "" and re.fullmatch(r"crowd: [^\n]+\n", done.stderr) and named in done.stderr
