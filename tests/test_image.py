"""The image of "make oci": what is in it, and that it serves where it may do little, in an engine that is used for that."""

import contextlib
import hashlib
import json
import os
import re
import resource
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path

import pytest

from gatling import Root, certificate, children, eventually

pytestmark = [pytest.mark.others, pytest.mark.timeout(900)]
TOP = Path(__file__).resolve().parent.parent
PATIENCE_S = 240  # for a command of podman, beside all other tests
TEXT = b"a line of text\n" * 2000


@pytest.fixture(scope="module")
def layout(plain):
    build = f"{plain}/image"
    made = subprocess.run(["make", "-s", "oci", f"BUILD={build}", f"OBJECTS={plain}/obj"], cwd=TOP, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return Path(build) / "oci"


@pytest.fixture(scope="module")
def image(layout):
    """Returns the configuration of the image, and a tar of its files."""

    def blob(descriptor):
        name = descriptor["digest"].removeprefix("sha256:")
        data = (layout / "blobs/sha256" / name).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (name, descriptor["size"])
        return data

    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (named,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(named))
    config = json.loads(blob(manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    blob(manifest["layers"][0])
    files = ["blobs/" + part["digest"].replace(":", "/") for part in (manifest["config"], *manifest["layers"])]
    # what Docker reads
    assert json.loads((layout / "manifest.json").read_text()) == [{"RepoTags": ["gatling:latest"], "Config": files[0], "Layers": files[1:]}]
    return config["config"], layout / files[1]


def test_the_image_serves_from_a_root_with_nothing_else_in_it_that_is_read_only(image, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("takes root")
    config, layer = image
    assert set(config["ExposedPorts"]) == {"8000/tcp", "443/tcp", "443/udp"}
    with tarfile.open(layer) as tar:
        assert tar.getnames() == ["gatling"]
        tar.extractall(tmp_path)
    (tmp_path / "srv").mkdir()
    (tmp_path / "srv/index.html").write_text("in a container")
    tmp_path.chmod(0o755)
    enter = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path} && exec chroot --userspec={config['User']} {tmp_path} \"$@\""
    command = ["unshare", "-m", "sh", "-c", enter, "sh", *config["Entrypoint"], "-i", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = []
        while "gatling: serving" not in (line := process.stderr.readline()):
            assert line, said
            said.append(line)
        with urllib.request.urlopen(re.search(r"http://\S+", line).group(0)) as answer:
            assert answer.read() == b"in a container"
        process.terminate()
        assert process.wait(20) == 0


# --- in podman ---

# A network, mounts and state of its own. crun(1) takes no control groups of version 1 beside version 2.
APART = """
mount -t tmpfs none /run
test ! -d /var/lib/cni || mount -t tmpfs none /var/lib/cni
umount -q /sys/fs/cgroup/unified || true
ip link set lo up
echo ready
exec sleep 600
"""
GROUP, GROUPS = f"gatling-image-{os.getpid()}", Path("/sys/fs/cgroup")


class Podman:
    """podman(1) with storage of its own."""

    def __init__(self, directory):
        # pylint: disable=consider-using-with
        self.holder = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-euc", APART], stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"
        self.enter = ["nsenter", "-t", str(self.holder.pid), "--mount", "--net"]
        places = [word for name in ("root", "runroot", "tmpdir") for word in (f"--{name}", str(directory / name))]
        self.options = [*places, "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
        # what it would set itself takes CAP_SYS_RESOURCE
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.limits = ["--ulimit", f"nofile={hard}:{hard}", "--ulimit", "nproc=4096:4096", "--cgroup-parent", f"/{GROUP}"]

    def __call__(self, command, *arguments, check=True, **options):
        more = self.limits if command == "run" else []
        done = subprocess.run([*self.enter, "podman", *self.options, command, *more, *arguments], capture_output=True, timeout=PATIENCE_S, check=False, **options)
        assert done.returncode == 0 or not check, done.stderr.decode()
        return done

    def get(self, url, *options):
        """Returns what curl(1) shows from outside the container."""
        return subprocess.run([*self.enter, "curl", "-sS", *options, url], capture_output=True, check=True).stdout

    @contextlib.contextmanager
    def running(self, *arguments):
        """Runs the image, as README says; yields the number of its first process. It has to end in order."""
        container = self("run", "-d", *arguments).stdout.decode().strip()
        try:
            eventually(lambda: b"gatling: serving" in self.said(container) or self.state(container)["Status"] == "exited", PATIENCE_S)
            assert self.state(container)["Status"] == "running", self.said(container)
            yield self.state(container)["Pid"]
            self("stop", "-t", "20", container)
            state = self.state(container)
            assert (state["ExitCode"], state["OOMKilled"]) == (0, False), self.said(container)
        finally:
            self("rm", "-f", "-t", "0", container)

    def said(self, container):
        return self("logs", container).stderr

    def state(self, container):
        return json.loads(self("inspect", container).stdout)[0]["State"]

    def close(self):
        self("rm", "-a", "-f", "-t", "0", check=False)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        groups = [path for name in (GROUP, "libpod_parent") for path in GROUPS.glob(f"**/{name}/**/") if path.is_dir()]
        for group in sorted(groups, reverse=True):
            with contextlib.suppress(OSError):  # another one's is not empty
                group.rmdir()


def readme(beginning):
    """Returns the words of README's line that begins so."""
    return re.search(rf"^    ({beginning}.*)$", (TOP / "README").read_text(), re.MULTILINE)[1].split()


@pytest.fixture(scope="module")
def podman(layout):
    if os.geteuid() != 0:
        pytest.skip("takes root")
    with tempfile.TemporaryDirectory(prefix="podman-") as directory:  # podman wants a path of up to 50 characters
        yield from serve_with(Podman(Path(directory)), layout)


def serve_with(engine, layout):
    """Yields the engine with the image loaded, and closes it."""
    load = " ".join(readme("tar .* podman load")).replace("build/oci", str(layout)).partition(" | podman ")
    with subprocess.Popen(load[0].split(), stdout=subprocess.PIPE) as tar:
        engine(*load[2].split(), stdin=tar.stdout)
    tried = engine("run", "--rm", "--network", "host", "gatling", "--version", check=False)
    if tried.returncode != 0:
        engine.close()
        pytest.skip(f"no container can be run here: {tried.stderr.decode()}")
    yield engine
    engine.close()


@pytest.fixture
def site():
    root = Root({"index.html": b"in a container", "text.txt": TEXT, "folder/a.txt": b"a"})
    yield root
    root.remove()


def run_of(readme_words, site):
    """Returns the arguments of podman run in README's line, for a site."""
    assert readme_words[:2] == ["podman", "run"]
    return [word.replace("/srv/www", str(site.path)) for word in readme_words[2:]]


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def in_group(pid, version1, version2):
    """Returns the number in a file of the control group of a process."""
    groups = dict(line.split(":", 2)[1:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    controller = version1.partition(".")[0]
    file = GROUPS / controller / groups[controller][1:] / version1 if controller in groups else GROUPS / groups[""][1:] / version2
    return int(file.read_text())


def test_one_line_of_readme_serves_a_directory(podman, site):
    with podman.running(*run_of(readme("podman run"), site)):
        assert podman.get("http://127.0.0.1/") == b"in a container"


def confined(site):
    return [*readme("--cap-drop"), "--memory-swap", "64m", "--network", "host", *run_of(readme("podman run"), site), "-j", "2"]


def test_it_serves_without_any_right_within_narrow_limits(podman, site):
    with podman.running(*confined(site)) as first:
        eventually(lambda: len(children(first)) == 2)
        processes = [first, *children(first)]
        for pid in processes:
            own = status(pid)
            assert [int(own[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 4
            assert own["NoNewPrivs"] == "1" and own["Uid"].split() == ["65534"] * 4 and own["Seccomp"] == "2"
        assert status(first)["NSpid"].split()[-1] == "1"
        assert in_group(first, "memory.limit_in_bytes", "memory.max") == 64 << 20 and in_group(first, "pids.max", "pids.max") == 64
        url = "http://127.0.0.1:8000"
        assert podman.get(f"{url}/") == b"in a container" and b"a.txt" in podman.get(f"{url}/folder/")
        packed = podman.get(f"{url}/text.txt", "-H", "Accept-Encoding: gzip")
        assert packed[:2] == b"\x1f\x8b" and len(packed) < len(TEXT)
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)


def test_its_memory_stays_within_the_limit(podman, site):
    """Without a limit it would take 180 MB."""
    for i in range(1000):
        site.write(f"{i}.txt", os.urandom(30_000).hex().encode())
    get = "curl -sS -Z --parallel-max 50 -o /dev/null http://127.0.0.1:8000/[0-999].txt"
    with podman.running(*confined(site)) as first:
        before = children(first)
        subprocess.run([*podman.enter, "sh", "-euc", f"{get} & {get} -H 'Accept-Encoding: gzip'; wait"], check=True, capture_output=True)
        assert children(first) == before and podman.get("http://127.0.0.1:8000/") == b"in a container"


def test_https_takes_the_port_that_visitors_use(podman, site):
    """The port has to be the same inside: redirects name it, and answers offer HTTP/3 there."""
    cert, key = certificate()
    os.chown(site.write("server.pem", cert.read_bytes() + key.read_bytes(), 0o600), 65534, 65534)
    with podman.running(*readme("--sysctl"), *run_of(readme("podman run"), site)):
        assert podman.get("https://127.0.0.1/", "-k") == b"in a container"
