"""The command line of httpbench."""

import re

import pytest

from running import httpbench

pytestmark = pytest.mark.decided


@pytest.mark.parametrize(
    "arguments,named",
    [
        ([], "URL"), (["http:///x"], "host"), (["ftp://a/"], "http://"), (["http://a:b/"], "port"),
        (["http://nosuchhost.invalid/"], "nosuchhost.invalid"), (["-R", "0", "http://a/"], "--rate"),
        (["-c", "0", "http://a/"], "--connections"), (["-c", "1.5", "http://a/"], "1.5"), (["-x", "http://a/"], "-x"),
        (["-t", "9", "-c", "8", "http://a/"], "threads"), (["--source", "127.0.0.1/40", "http://a/"], "--source"),
        (["--unix", "/" + "x" * 120, "http://a/"], "too long"), (["--json", "/nonexistent/x", "http://127.0.0.1/"], "/nonexistent/x"),
        (["-H", "nonsense", "http://a/"], "nonsense"), (["--expect", "/nonexistent", "http://a/"], "/nonexistent"), (["--search", "p99>5", "http://a/"], "p99>5"),
        (["--search", "p99<5ms", "-R", "5", "http://a/"], "--rate"), (["--start-at", "5", "http://127.0.0.1/"], "passed"),
        (["--rank", "3", "--ranks", "3", "http://127.0.0.1/"], "rank 3"), (["http://127.0.0.1/", "http://127.0.0.2/"], "127.0.0.2"), (["--urls", "/nonexistent"], "/nonexistent"),
        (["http://a/\033[5;5H"], "control character"), (["http://a/a b"], "blank"), (["-H", "A: b\r\n\r\nGET", "http://a/"], "one line"),
        (["--unix", "", "http://a/"], "--unix"), (["--seed", "1.5", "http://a/"], "--seed takes a whole number"), (["-t", "3", "-c", "2", "http://a/"], "--connections 2"),
        (["-qc", "5", "http://a/"], "'-q'"), (["-c"], "'-c' needs a value"), (["--nothing", "http://a/"], "'--nothing'"), (["--rate"], "'--rate' needs"),
        (["-H", "connection:  Close", "http://a/"], "use -k 1"), (["-H", ":path: /b", "http://a/"], "Name: value"), (["-H", "A b: c", "http://a/"], "A b: c"),
        (["-d", "10s", "http://a/"], "seconds"), (["-T", "1m", "http://a/"], "seconds"), (["-X", "", "http://a/"], "--method"),
        (["ws://a/"], "use http:// with --websocket"), (["WSS://a/"], "use https:// with --websocket"),
        (["-n", "1", "--ranks", "2", "http://127.0.0.1/"], "--ranks"), (["https:///x"], "host"),
        (["--source", "::1", "http://127.0.0.1/"], "--source"), (["--source", "192.0.2.7", "http://127.0.0.1/"], "--source"), (["-n", "1.5", "http://a/"], "1.5"),
        (["--heads", "/dev/null", "http://a/"], "no fields"), (["http://me:secret@127.0.0.1/"], "Authorization"),
        (["--urls", "/dev/null"], "no URL"), (["--urls", "/dev/null", "http://a/"], "http://a/"), (["merge"], "logs"), (["merge", "/nonexistent"], "/nonexistent"),
    ],
)  # fmt: skip
def test_bad_input_is_named_in_one_line(build, arguments, named):
    done = httpbench(build, *arguments, status=2)
    assert done.stdout == "" and re.fullmatch(r"httpbench: [^\n]+\n", done.stderr) and named in done.stderr


@pytest.mark.parametrize("option", ["--body", "--expect", "--heads", "--urls", "--json", "--tsv", "--hlog"])
@pytest.mark.parametrize("path, why", [("", "No such file"), ("/", "Is a directory"), ("/nonexistent/x", "No such file")])
def test_a_file_that_cannot_be_opened_is_named_with_its_option(build, option, path, why):
    done = httpbench(build, option, path, *([] if option == "--urls" else ["http://127.0.0.1/"]), status=2)
    assert done.stdout == "" and re.fullmatch(rf"httpbench: {option}: cannot (read|write) '?{path}'?: {why}[^\n]+\n", done.stderr)


@pytest.mark.parametrize("text, options, named", [
    ("A: b\n\nC d\n", [], "line 3: 'C d'"), ("A: b\nConnection: close\n", [], "use -k 1"), ("A: b\0c\n", [], "no text"),
    ("A: b\n\n" * 1025, [], "more than 1024 heads"), ("A: b\n", ["--http2"], "HTTP/1.1"), ("A: b\n", ["--websocket"], "HTTP/1.1"),
])  # fmt: skip
def test_heads_that_cannot_be_sent_are_named(build, tmp_path, text, options, named):
    (tmp_path / "heads").write_text(text)
    done = httpbench(build, "--heads", tmp_path / "heads", *options, "http://127.0.0.1/", status=2)
    assert re.fullmatch(r"httpbench: [^\n]+\n", done.stderr) and named in done.stderr


def test_a_file_without_an_end_is_refused(plain):
    done = httpbench(plain, "--body", "/dev/zero", status=2)
    assert re.fullmatch(r"httpbench: --body: /dev/zero has more than 268435456 bytes [^\n]+\n", done.stderr)


def test_a_socket_that_nobody_listens_on_is_named(build, tmp_path):
    done = httpbench(build, "-n", 1, "--unix", tmp_path / "socket", "http://127.0.0.1/", status=2)
    assert done.stderr == f"httpbench: cannot connect to {tmp_path}/socket: No such file or directory\n"


@pytest.mark.parametrize("command", ["merge", "compare"])
def test_a_log_that_cannot_be_read_is_not_taken_for_a_short_one(build, tmp_path, command):
    done = httpbench(build, command, tmp_path, tmp_path, status=2)
    assert f"httpbench: {tmp_path}: Is a directory\n" in done.stderr and "cut short" not in done.stderr


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("wrong", ["ftp://a/", "http://127.0.0.2/"])
def test_a_wrong_url_in_a_file_is_named_by_its_line(build, tmp_path, line_end, wrong):
    (tmp_path / "urls").write_text(line_end.join(["# some", "", "http://127.0.0.1/", wrong]), newline="")
    done = httpbench(build, "--urls", tmp_path / "urls", status=2)
    assert re.fullmatch(r"httpbench: [^\n]+\n", done.stderr) and f"{tmp_path}/urls, line 4: " in done.stderr and wrong in done.stderr


def test_the_version_and_the_libraries_are_printed(build):
    assert re.fullmatch(r"httpbench \d\S+ \(\w+; OpenSSL .*, nghttp2 \d[^;]*; (no )?HTTP/3.*\)\n", httpbench(build, "--version").stdout)


def test_a_build_without_http3_says_what_it_needs(build):
    version = httpbench(build, "--version").stdout
    needs = re.search(r"no HTTP/3 \(needs ngtcp2 [^)]*\)", version)
    if not needs:
        pytest.skip("this build has HTTP/3")
    assert f"httpbench: --http3: this build has {needs.group()}" in httpbench(build, "--http3", "https://127.0.0.1:1/", status=2).stderr
