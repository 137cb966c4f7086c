"""What "make install" installs, and whether a service manager can run it."""

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from gatling import Connection, Root, Server, children, eventually

TOP = Path(__file__).resolve().parent.parent
SHELLS = {"bash": "bash-completion/completions/gatling", "zsh": "zsh/site-functions/_gatling", "fish": "fish/vendor_completions.d/gatling.fish"}


def make(plain, target, prefix, destination=""):
    command = ["make", "-s", target, f"BUILD={plain}", f"PREFIX={prefix}", f"DESTDIR={destination}"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def files(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


@pytest.fixture(scope="module")
def installed(plain, tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed")
    make(plain, "install", prefix)
    return prefix


def test_uninstall_removes_all_that_install_has_put_there(plain, tmp_path):
    make(plain, "install", "/usr", tmp_path)
    found = files(tmp_path)
    assert {"usr/bin/gatling", "usr/bin/gatling-hold", "usr/share/man/man8/gatling.8", "usr/share/man/man7/gatling-machine.7", "usr/share/man/man7/gatling-trust.7",
            "usr/share/man/man5/gatling-site.5", "usr/share/man/man7/gatling-operate.7", "usr/lib/systemd/system/gatling.service", "etc/logrotate.d/gatling", "etc/default/gatling"} <= set(found)  # fmt: skip
    # a name that mentions neither gatling nor HTTP connections may be another package's
    assert [name for name in found if re.fullmatch("usr/bin/.*", name) and not re.search("gatling|httpbench|connbench", name)] == []
    make(plain, "uninstall", "/usr", tmp_path)
    assert files(tmp_path) == [] and not (tmp_path / "usr/share/gatling").exists()


def test_what_the_owner_has_written_survives(plain, tmp_path):
    make(plain, "install", "/usr", tmp_path)
    (tmp_path / "etc/default/gatling").write_text("GATLING_ROOT=/mine\n")
    make(plain, "install", "/usr", tmp_path)
    make(plain, "uninstall", "/usr", tmp_path)
    assert files(tmp_path) == ["etc/default/gatling"]
    assert (tmp_path / "etc/default/gatling").read_text() == "GATLING_ROOT=/mine\n"


@pytest.mark.parametrize("told,lists", [("", False), ("GATLING_LISTINGS=--listings\n", True), ("GATLING_OPTIONS=-d\n", True), ("GATLING_LISTINGS=\n", True)])
def test_the_service_lists_directories_only_if_it_is_told_to(plain, tmp_path, told, lists):
    """The command of the unit is run, with its variables and those of /etc/default."""
    make(plain, "install", "/usr", tmp_path)
    unit = (tmp_path / "usr/lib/systemd/system/gatling.service").read_text()
    root = Root({"staging.example.org/index.html": b"not yet"})
    lines = (tmp_path / "etc/default/gatling").read_text().splitlines() + [f"GATLING_ROOT={root.path}", *told.splitlines()]
    assigned = re.search("^Environment=(.*)", unit, re.MULTILINE).group(1).split() + [line for line in lines if line and line[0] != "#"]
    variables = dict(assignment.split("=", 1) for assignment in assigned)
    command = re.search("^ExecStart=(.*)", unit, re.MULTILINE).group(1).split()
    words = []
    for word in command[1:]:
        name = word.strip("${}")
        words += [word] if word[0] != "$" else [variables[name]] if "{" in word else variables[name].split()
    log = words.index("--log-file")
    assert words.pop() == str(root.path)
    with Server(plain, root, "-j", "1", *words[:log], *words[log + 2 :]) as server:
        response = server.get("/")
        assert response.status == (200 if lists else 403) and (b"staging" in response.body) == lists


def test_a_package_of_debian_has_what_was_installed(plain, tmp_path):
    command = ["make", "-s", "deb", f"BUILD={plain}", "MAINTAINER=A Name <a@name.org>"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, umask=0o077)
    assert done.returncode == 0, done.stderr
    package = plain / "deb" / Path(done.stdout.split()[-1]).name
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
    found = {line.split()[5]: line.split()[:2] for line in listed.splitlines()}
    assert found["./usr/bin/gatling"] == ["-rwxr-xr-x", "root/root"]
    assert found["./usr/lib/systemd/system/gatling.service"] == ["-rw-r--r--", "root/root"]
    assert {"./usr/share/man/man8/gatling.8.gz", "./usr/share/zsh/vendor-completions/_gatling", "./etc/default/gatling"} <= set(found)
    control = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True, check=True).stdout
    assert "\nMaintainer: A Name <a@name.org>\n" in control and re.search(r"^Depends:.*libowfat", control, re.MULTILINE)


@pytest.mark.parametrize("maintainer", ["", "nobody", "A <b@c> d", "A & B <b@c>"])
def test_a_package_has_somebody_who_answers_for_it(plain, tmp_path, maintainer):
    done = subprocess.run(["gatling/system/debian/package", tmp_path, maintainer], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 1 and "MAINTAINER='Name <address>'" in done.stderr


def test_the_dashboard_asks_for_what_is_measured(plain):
    dashboard = (TOP / "gatling/system/grafana.json").read_text()
    names = set(re.findall(r"gatling_\w+(?=\{)", dashboard))
    assert len(json.loads(dashboard)["panels"]) == 18 and len(names) > 15
    place = Root()
    place.path.chmod(0o777)

    def missing():
        with Connection(str(place.path / "status"), family=socket.AF_UNIX) as c:
            text = c.get("/metrics").body.decode()
        return {name for name in names if not re.search(rf"^{name}[ {{]", text, re.MULTILINE)}

    files = {"a": b"a", "_redirects": b"/api http://127.0.0.1:1/ 200\n"}
    with Server(plain, Root(files), "-j", "1", "--status", f"unix:{place.path / 'status'}", "--upstream", "127.0.0.1") as server:
        assert server.get("/a").status == 200 and server.get("/api").status == 502
        assert eventually(lambda: not missing())
    place.remove()


def test_a_prefix_that_make_would_split_is_refused(plain, tmp_path):
    for target in ("install", "uninstall"):
        command = ["make", "-s", target, f"BUILD={plain}", f"PREFIX={tmp_path}/my app"]
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
        assert done.returncode != 0 and "PREFIX and SYSCONFDIR may have" in done.stderr
    assert files(tmp_path) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_each_option_is_completed(installed, shell):
    def help_text(*subject):
        return subprocess.run([installed / "bin/gatling", "--help", *subject], capture_output=True, text=True, check=True).stdout

    options = re.findall(r"^ +(?:-\w, )?--([a-z-]+)", help_text() + help_text("acme"), re.MULTILINE)
    text = (installed / "share" / SHELLS[shell]).read_text()
    flag = {"bash": "--{}[' ]", "zsh": r"'\*?--{}\[", "fish": " -l {} "}[shell]
    assert len(options) > 40 and [option for option in options if not re.search(flag.format(option), text)] == []
    limits = re.findall(r"^  ([a-z-]+=)", help_text("limits"), re.MULTILINE)
    assert len(limits) == 20 and " ".join(limits) in text
    if shutil.which(shell):
        subprocess.run([shell, "-n", installed / "share" / SHELLS[shell]], check=True)


def completed(installed, *words):
    """Returns what bash offers for the last of the words."""
    script = f'. {installed / "share" / SHELLS["bash"]}; compopt() {{ :; }}; _gatling gatling "$1" "$2"; echo "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", script, "bash", words[-1], words[-2]], capture_output=True, text=True, check=True).stdout.split()


def test_limits_are_completed_after_their_option_alone(installed):
    assert completed(installed, "gatling", "--limit", "address-r") == ["address-rate=", "address-requests="]
    assert completed(installed, "gatling", "--li") == ["--listen", "--limit", "--listings"]


def test_administrators_may_read_the_log(installed):
    if os.geteuid() != 0:
        pytest.skip("takes root")
    root = Root({"index.html": b"hello"})
    line = (installed / "lib/tmpfiles.d/gatling.conf").read_text().replace("/var/log/gatling", str(root.path / "log")).replace(" gatling ", " nobody ")
    root.write("conf", line.encode())
    subprocess.run(["systemd-tmpfiles", "--create", root.path / "conf"], check=True)
    with Server(installed / "bin", root, "-j", "1", "--log-file", root.path / "log/access.log", umask=0o027):
        log = root.path / "log/access.log"
        assert (log.group(), log.owner(), log.stat().st_mode & 0o777) == ("adm", "nobody", 0o640)
    root.remove()


def units(installed):
    return sorted((installed / "lib/systemd/system").iterdir())


def test_the_units_are_valid(installed):
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units(installed)], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "gatling" in line and "bindings" not in line]
    assert ours == []


def test_the_service_is_confined(installed):
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=15", "--no-pager", installed / "lib/systemd/system/gatling.service"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def allowed_calls(unit):
    """Returns the names of the system calls that a unit allows."""
    names = re.search(r"^SystemCallFilter=(.*)$", unit.read_text(), re.MULTILINE).group(1).split()
    for name in names:  # grows in the loop
        if name.startswith("@"):
            said = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name], capture_output=True, text=True, check=True).stdout
            names += re.findall(r"^ +([a-z@][\w@-]*)$", said, re.MULTILINE)
    return set(names)


def test_the_service_may_do_what_the_server_does(installed, tmp_path):
    root, trace = Root({"index.html": b"hello" * 100_000}), tmp_path / "calls"
    command = ["strace", "-f", "-qq", "-o", trace, installed / "bin/gatling", "-p", "0", "-i", "127.0.0.1", "--log-file", tmp_path / "log", root.path]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while "gatling: serving" not in (line := process.stderr.readline()):
            assert line
        url = re.search(r"http://\S+", line).group(0)
        with urllib.request.urlopen(url) as answer:
            assert len(answer.read()) == 500_000
        (tmp_path / "log").rename(tmp_path / "old")
        server = eventually(lambda: children(process.pid))[0]
        for number in ("HUP", "TERM"):
            subprocess.run(["kill", f"-{number}", str(server)], check=True)
            if number == "HUP":
                eventually((tmp_path / "log").exists)
        process.wait(20)
    root.remove()
    # it started as root, unlike the service
    of_root = {"chroot", "setgroups", "setuid", "setgid", "capset"}
    made = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.MULTILINE)) - of_root
    assert len(made) > 40 and made - allowed_calls(installed / "lib/systemd/system/gatling.service") == set()
