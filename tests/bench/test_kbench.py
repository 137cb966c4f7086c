"""The kernel benchmarks, small, and what they do at limits."""

import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import analysis
import pytest
from gatling import eventually, runnable

NETWORK = ["received_mbit_s", "packets_s", "cpu_percent", "megabyte_cpu_ns", "sender_percent", "receiver_percent"]
COLUMNS = {
    "socket": ["socket_ns"],
    "bind": ["socket_ns", "bind_ns"],
    "accept": ["connect_ns", "accept_ns"],
    "fork": ["start_ns", "end_ns"],
    "mmap": ["mmap_ns", "touch_ns"],
    "files": ["open_ns", "mmap_ns", "touch_ns"],
    "event": ["event_ns"],
    "download": ["kilobytes_s"],
    "stream": NETWORK,
    "relay": NETWORK,
    "forward": NETWORK,
}
POINTS = {"download": 4, "stream": 4, "relay": 4, "forward": 4}  # otherwise 60
KINDS = [("socket", "udp"), ("socket", "unix"), ("bind", "reuse"), ("fork", "exec"), ("fork", "spawn"), ("fork", "thread"),
         ("mmap", "private"), ("event", "first"), ("download", "scattered"), ("download", "disk"), ("relay", "splice"),
         ("stream", "udp"), ("stream", "multicast"), ("stream", "iperf3"), ("forward", "udp")]  # fmt: skip
MEASURED = {"PASS", "XPASS", "NOISY", "CLIENT"}


def kbench(plain, *arguments, status=0, program="kbench", **options):
    """Returns the completed process."""
    command = [plain / "bench" / program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == status, done.stdout[-2000:] + done.stderr
    return done


def own_namespaces():
    return os.geteuid() == 0 and shutil.which("ip")


def may_skip(table):
    """Root with ip(8) has all that is needed, except the file system."""
    verdict, words = table.verdicts[0]
    if verdict == "SKIP" and (not own_namespaces() or "ext4" in words or "memory" in words):
        pytest.skip(words)


def group(pid):
    """Returns a process and its descendants."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def table_of(done):
    return analysis.parse(done.stdout)


def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


@pytest.mark.parametrize("name, kind", [(name, "") for name in COLUMNS] + KINDS)
def test_each_point_of_each_run_is_kept(first_build, name, kind):
    points = POINTS.get(name, 60)
    arguments = [name, "-n", points, "--runs", 2, *(["--kind", kind] if kind else [])]
    table = table_of(kbench(first_build, *arguments))
    may_skip(table)
    assert table.columns == COLUMNS[name]
    assert {verdict for verdict, _ in table.verdicts.values()} <= MEASURED
    for run in (0, 1):
        assert list(table.runs[run]["n"]) == list(range(points))
        assert (table.runs[run][table.columns[0]] > 0).all()
        assert all((table.runs[run][column] > 0).all() for column in table.columns if column.endswith("_ns"))
    assert table.header["benchmark"][0] == name and table.header["kind"] == [kind or table.header["kind"][0]]
    for key in ("program", "command", "kernel", "cpu", "clocksource", "clock_ns", "descriptors", "date", "how", "n"):
        assert table.header[key][0]


def test_an_event_is_measured_with_the_mechanism_of_the_build(build, request):
    table = table_of(kbench(build, "event", "-n", 300, "--runs", 1))
    assert table.header["mechanism"] == [request.node.callspec.id] and len(table.runs[0]["n"]) == 300


def test_no_more_descriptors_are_idle_than_n_says(plain):
    """n is 0, 1 and 2, in the run that is discarded and in the other one."""
    done = subprocess.run(["strace", "-f", "-e", "trace=socket", plain / "bench" / "kbench", "event", "-n", "3", "--runs", "1"],
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    assert done.stderr.count("socket(AF_INET, SOCK_DGRAM") == 2 * 2


def test_the_twin_is_linked_statically(plain):
    linked = [table_of(kbench(plain, "fork", "--kind", "exec", "-n", 5, program=program)).header["linked"]
              for program in ("kbench", "kbench-static")]  # fmt: skip
    assert linked == [["dynamically"], ["statically"]]


def test_a_child_that_cannot_run_its_program_ends_the_run(plain, tmp_path):
    """The program is a copy that may no longer be executed once it runs."""
    program = Path(shutil.copy(plain / "bench" / "kbench", tmp_path))
    command = [program, "fork", "--kind", "exec", "-n", "1000", "--runs", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        program.chmod(0o600)
        output, error = process.communicate(timeout=20)
    assert process.returncode == 1 and re.fullmatch(r"kbench: fork, run 0: FAIL: exec at \d+: Permission denied\n", error)
    assert output.count("\n0\t") == int(re.search(r"exec at (\d+)", error)[1])


def test_a_group_of_points_is_a_row_with_its_maximum(plain):
    """What a group is like is told by a run with all points that has the same ones: those of mmap are kept until it ends."""
    table = table_of(kbench(plain, "socket", "-n", 100, "--points", 10, "--runs", 1))
    run = table.runs[0]
    assert list(run["n"]) == list(range(0, 100, 10)) and table.columns == ["socket_ns"]
    assert ((run["n"] <= run["socket_ns.max_n"]) & (run["socket_ns.max_n"] < run["n"] + 10)).all()
    assert ((run["socket_ns"] <= run["socket_ns.max"]) & (run["socket_ns.median"] <= run["socket_ns.max"])).all()
    first = run["socket_ns.max_n"] == run["n"]
    assert (run["socket_ns"][first] == run["socket_ns.max"][first]).all()


def test_the_last_group_may_be_smaller(plain):
    table = table_of(kbench(plain, "mmap", "-n", 101, "--points", 60, "--runs", 1))
    assert list(table.runs[0]["n"]) == list(range(0, 101, 2)) and table.columns == COLUMNS["mmap"]
    for column in table.columns:
        assert table.runs[0][f"{column}.max_n"][-1] == 100
        assert table.runs[0][column][-1] == table.runs[0][f"{column}.median"][-1] == table.runs[0][f"{column}.max"][-1]


@pytest.mark.parametrize("arguments", [["stream"], ["stream", "--kind", "multicast"], ["forward"], ["relay"]])
def test_each_way_is_there_for_both_families(plain, arguments):
    for family in ([], ["-6"]):
        table = table_of(kbench(plain, *arguments, *family, "-n", 3, "--runs", 1))
        may_skip(table)
        assert table.runs[0]["received_mbit_s"][-1] > 0
        assert not own_namespaces() or table.header["path"] == ["veth(4)"]


@pytest.mark.parametrize("link", ["jumbo", "no-tso", "gro", "no-checksum", "bridge", "vlan", "vxlan", "gre", "ipip", "wireguard"])
def test_a_link_may_be_of_any_kind_that_the_kernel_has(plain, link):
    if not own_namespaces():
        pytest.skip("takes root and ip(8)")
    table = table_of(kbench(plain, "stream", "--link", link, "-n", 3, "--runs", 1))
    verdict, words = table.verdicts[0]
    if verdict == "SKIP":
        assert words.startswith(f"{link} takes root, ip(8), veth(4), its module of the kernel")
        pytest.skip(words)
    assert verdict in MEASURED and table.header["path"] == [f"{link} over veth(4)"] and table.runs[0]["received_mbit_s"][-1] > 0


@pytest.mark.parametrize("link, least, most", [("veth", 9_000, 64_000), ("no-tso", 1400, 1500), ("bridge", 9_000, 64_000)])
def test_a_packet_is_counted_once_on_a_link(plain, link, least, most):
    """Its size is that of a segment that the interface divides, or of a frame. Bytes and packets
    are not counted at the same moment, which matters little in twenty samples."""
    if not own_namespaces():
        pytest.skip("takes root and ip(8)")
    table = table_of(kbench(plain, "stream", "--link", link, "-n", 20, "--runs", 1))
    run = table.runs[0]
    assert least < run["received_mbit_s"].sum() * 1e6 / 8 / run["packets_s"].sum() < most


def test_links_that_cannot_be_are_refused(plain):
    assert "--link takes one of: veth, jumbo," in kbench(plain, "stream", "--link", "x", status=2).stderr
    assert "IPv4 alone" in kbench(plain, "forward", "--link", "ipip", "-6", status=2).stderr


def test_empty_datagrams_are_counted(plain):
    table = table_of(kbench(plain, "stream", "--kind", "udp", "--size", 0, "-n", 3, "--runs", 1))
    assert table.runs[0]["packets_s"][-1] > 1000 and table.runs[0]["received_mbit_s"][-1] == 0


def test_iperf3_of_several_streams_is_their_sum(plain):
    """With tcp(7) and three streams, about as much is received, apart from the load of the
    machine."""
    rates = [table_of(kbench(plain, "stream", "--kind", kind, "--streams", 3, "-n", 10, "--runs", 1)).runs[0]["received_mbit_s"].sum()
             for kind in ("tcp", "iperf3")]  # fmt: skip
    assert rates[0] / 4 < rates[1] < rates[0] * 4


def test_without_iperf3_it_is_skipped(plain):
    assert "there is no iperf3(1)" in kbench(plain, "stream", "--kind", "iperf3", "-n", 2, env={"PATH": "/nowhere"}).stderr


def test_two_downloads_compete(plain, tmp_path):
    """The other download is requested by its name."""
    log = tmp_path / "log"
    server = tmp_path / "gatling"
    server.write_text(f'#!/bin/sh\nshift 6\nexec {plain}/gatling -c "$(ls -d {tmp_path}/kbench-*)" -i 127.0.0.1 -p 0 -j 1 >{log}\n')
    server.chmod(0o755)
    kbench(plain, "download", "--streams", 2, "-n", 20, "--runs", 1, "--server", server, "--directory", tmp_path)
    assert {"GET /0 ", "GET /1 "} <= set(re.findall(r"GET /\d ", log.read_text()))


def test_without_a_server_a_download_is_skipped(plain, tmp_path):
    """Beside a copy of the program there is no server."""
    program = shutil.copy(plain / "bench" / "kbench", tmp_path)
    done = subprocess.run([program, "download", "-n", "2", "--runs", "1"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == f"kbench: download, run 0: SKIP: {tmp_path}/gatling is not there: --server PATH\n"


def test_nothing_is_left_behind(plain, tmp_path):
    for name in ("files", "download", "mmap"):
        kbench(plain, name, "-n", 3, "--runs", 1, "--directory", tmp_path)
    assert not list(tmp_path.iterdir())


def test_connections_come_from_several_addresses(plain):
    """Each has ten ports, one of which is the listener's."""
    table = table_of(kbench(plain, "accept", "--sources", 3, "--ports", "40000-40009", "-n", 25, "--runs", 1))
    may_skip(table)
    assert len(table.runs[0]["n"]) == 25


def test_a_server_that_does_not_serve_is_given_up_with_its_words(plain, tmp_path):
    server = tmp_path / "gatling"
    server.write_text("#!/bin/sh\necho gatling: as root >&2\necho gatling: no room >&2\nexit 1\n")
    server.chmod(0o755)
    for program, words in ((server, "gatling: no room"), ("/bin/true", "it said nothing")):
        done = kbench(plain, "download", "--server", program, "-n", 2, "--runs", 1, status=1)
        assert done.stderr == f"kbench: download, run 0: FAIL: {program} does not serve: {words}\n"


def test_who_is_interrupted_leaves_no_process(plain):
    with subprocess.Popen([plain / "bench" / "kbench", "relay", "-n", "600"], stdout=subprocess.DEVNULL) as process:
        eventually(lambda: len(group(process.pid)) >= 4)
        running = group(process.pid)
        process.terminate()
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in running))


@pytest.mark.parametrize("name, number", [("files", signal.SIGINT), ("files", signal.SIGHUP), ("download", signal.SIGTERM)])
def test_who_is_interrupted_leaves_no_file(plain, tmp_path, name, number):
    """Also while the files are being made. Whoever runs the tests may ignore these signals, as
    nohup(1) does."""
    command = ["env", "--default-signal=INT,HUP", plain / "bench" / "kbench", name, "-n", "100000", "--directory", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: len(list(tmp_path.glob("kbench-*/*"))))
        process.send_signal(number)
        output, error = process.communicate(timeout=60)
    assert process.returncode == 1 and not list(tmp_path.iterdir())
    assert error == f"kbench: {name}, run 0: FAIL: interrupted\n" and output.endswith("# verdict\t0\tFAIL\tinterrupted\n")


def test_a_run_that_is_interrupted_keeps_its_points(plain):
    """The first run has all of its steps, of 100 ms each, and the second those up to the signal."""
    process = subprocess.Popen([plain / "bench" / "kbench", "stream", "-n", "20", "--runs", "9"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    with process:
        head = "".join(iter(process.stdout.readline, "run\tn\t" + "\t".join(COLUMNS["stream"]) + "\n"))
        rows = [process.stdout.readline() for _ in range(20)]
        time.sleep(1.5)
        process.terminate()
        output, _ = process.communicate(timeout=60)
    assert head and all(row.startswith("0\t") for row in rows) and process.returncode == 1
    assert 1 <= sum(line.startswith("1\t") for line in output.splitlines()) < 20
    assert output.endswith("# verdict\t1\tFAIL\tinterrupted\n")


def name_of(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def mappings(pid):
    """Returns the mappings of kbench's files in the process of a run."""
    return [re.findall("/kbench-", Path(f"/proc/{child}/maps").read_text()) for child in group(pid)[1:]]


@pytest.mark.parametrize("name, slowly, under_way", [
    ("fork", [], lambda pid: len(group(pid)) > 300),
    ("mmap", ["-e", "inject=mmap:delay_exit=5ms:when=50+"], lambda pid: any(len(found) > 250 for found in mappings(pid))),
], ids=["fork", "mmap"])  # fmt: skip
def test_a_run_whose_points_are_completed_at_its_end_keeps_them_as_well(plain, name, slowly, under_way):
    """There are more points than in the run that is discarded, which has 200. The signal comes
    twice at once, as from timeout(1)."""
    strace = ["strace", "-f", "-o", "/dev/null", "-e", "trace=mmap", *slowly] if slowly else []
    command = [*strace, plain / "bench" / "kbench", name, "-n", "20000", "--kind", {"fork": "exec", "mmap": "shared"}[name]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: "kbench" in (name_of(pid) for pid in group(process.pid)))
        kbench_pid = next(pid for pid in group(process.pid) if name_of(pid) == "kbench")
        eventually(lambda: under_way(kbench_pid), 30)
        for _ in range(2):
            os.kill(kbench_pid, signal.SIGTERM)
        output, error = process.communicate(timeout=60)
    assert process.returncode == 1 and error == f"kbench: {name}, run 0: FAIL: interrupted\n"
    table = analysis.parse(output)
    assert 250 < len(table.runs[0]["n"]) < 20_000 and list(table.runs) == [0]
    assert all((table.runs[0][column] > 0).all() for column in COLUMNS[name])


def test_a_table_that_cannot_be_written_ends_the_runs(plain):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([plain / "bench" / "kbench", "stream", "-n", "10", "--runs", "1000"], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1 and "kbench: cannot write the report: No space left on device\n" in done.stderr


def test_a_run_that_takes_too_long_says_so(plain):
    """The time is over when the signal of alarm(2) comes."""
    process = subprocess.Popen([plain / "bench" / "kbench", "stream", "-n", "600", "--runs", "1"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    with process:
        eventually(lambda: len(group(process.pid)) >= 3)
        time.sleep(2)  # the run to be discarded has ended
        os.kill(group(process.pid)[1], signal.SIGALRM)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 1 and error == "kbench: stream, run 0: FAIL: a run may take 600 seconds: with a smaller -n it takes less\n"


def test_the_files_are_where_they_are_said_to_be(plain):
    extents = {}
    for kind in ("disk", "scattered"):
        table = table_of(kbench(plain, "download", "--kind", kind, "-n", 30, "--runs", 1))
        may_skip(table)
        extents[kind] = int(table.header["extents"][0])
    assert extents["scattered"] > 50 and extents["disk"] < 30
    assert "stay in memory" in kbench(plain, "download", "--kind", "disk", "--directory", "/dev/shm", "-n", 4).stderr


@pytest.mark.parametrize("name", ["socket", "bind"])
def test_at_the_limit_of_descriptors_it_stops_and_says_which(plain, name):
    done = kbench(plain, name, "-n", 200, "--runs", 2, status=3, preexec_fn=limited(resource.RLIMIT_NOFILE, 64))
    table = table_of(done)
    assert "RLIMIT_NOFILE, 64" in done.stderr
    for run, (verdict, words) in table.verdicts.items():
        count = len(table.runs[run]["n"])
        assert verdict == "LIMIT" and 40 < count < 64 and words.startswith(f"socket at {count}: ")


@pytest.mark.parametrize("name, call, count", [("bind", "bind", 10), ("accept", "connect", 9)])
def test_at_the_end_of_the_ports_it_stops_and_says_so(plain, name, call, count):
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        before = file.read()
    done = subprocess.run([plain / "bench" / "kbench", name, "-n", "50", "--ports", "40000-40009", "--runs", "1"],
                          capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    table = table_of(done)
    may_skip(table)
    assert done.returncode == 3 and table.header["namespace"] == ["own"]
    verdict, words = table.verdicts[0]
    assert verdict == "LIMIT" and words.startswith(f"{call} at {count}: ") and "ip_local_port_range" in words
    assert 5 in [n for n, _ in table.landmarks]
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        assert file.read() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to be somebody with few processes")
def test_at_the_limit_of_processes_it_ends_those_that_there_are(plain):
    done = kbench(plain, "fork", "-n", 500, "--runs", 1, status=3, program=runnable(plain, "bench/kbench"), user=65533,
                  preexec_fn=limited(resource.RLIMIT_NPROC, 20))  # fmt: skip
    table = table_of(done)
    assert table.verdicts[0][0] == "LIMIT" and "RLIMIT_NPROC" in table.verdicts[0][1]
    assert 10 < len(table.runs[0]["n"]) < 20
    assert not re.search(rb"kbench", subprocess.run(["ps", "-u", "65533", "-o", "comm"], capture_output=True, check=False).stdout)


@pytest.mark.parametrize("arguments, words", [
    ([], "which benchmark"),
    (["sockets"], "no benchmark 'sockets'"),
    (["socket", "--kind", "x"], "--kind takes one of: tcp, udp, unix"),
    (["socket", "--sources", "2"], "--sources"),
    (["bind", "--ports", "100"], "a range"),
    (["bind", "--ports", "200-100"], "--ports takes"),
    (["socket", "-n", "0"], "--count takes"),
    (["socket", "x"], "'x'"),
    (["download", "--streams", "3"], "--streams from 1 to 2"),
    (["accept", "-6", "--sources", "2"], "one IPv6 address"),
    (["stream", "--size", "100"], "--kind udp"),
    (["download", "--server", "/nowhere"], "--server takes a program, not '/nowhere': No such file"),
    (["download", "--server", "/"], "--server takes a program, not '/': Is a directory"),
    (["files", "--directory", ""], "--directory takes one to write to, not '': No such file"),
    (["mmap", "--directory", "/nowhere"], "'/nowhere': No such file"),
    (["download", "--directory", "/dev/null"], "--directory takes one to write to, not '/dev/null': "),
])  # fmt: skip
def test_what_is_wrong_with_the_command_line_is_said_in_a_line(plain, arguments, words):
    done = kbench(plain, *arguments, status=2)
    assert words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COLUMNS)])
def test_help_fits_a_terminal(plain, arguments):
    done = kbench(plain, *arguments)
    assert max(map(len, done.stdout.splitlines())) <= 80
