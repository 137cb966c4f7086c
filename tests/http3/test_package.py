"""The package of a Debian 13 with backports: it has HTTP/3, says what that takes, and serves in a fresh one."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from gatling import Root, Server, certificate
from root import add_backports, environment, inside, make_root, reachable

TOP = Path(__file__).resolve().parent.parent.parent
TAKEN = {"libngtcp2-16": "1.22", "libngtcp2-crypto-ossl0": "1.22", "libnghttp3-9": "1.15", "libssl3t64": "3.5.1"}
MAKE_TIMEOUT_S = 1200

pytestmark = [pytest.mark.others, pytest.mark.timeout(MAKE_TIMEOUT_S)]


@pytest.fixture(scope="module")
def package(http3):
    """Returns a package that is built as if HTTP3_DEFAULT were maybe-http3."""
    if not reachable():
        pytest.skip("takes packages of Debian")
    build = http3.build / "package"
    switched = ("HTTP3_DEFAULT=maybe-http3", "MAINTAINER=A Name <a@name.org>", f"BUILD={build}")
    http3.run("make", "-s", "deps", "FOR=deb", *switched)
    http3.run("make", "-s", f"-j{os.cpu_count()}", "deb", *switched)
    (made,) = (build / "deb").glob("*.deb")
    return made


def test_it_depends_on_the_least_versions_that_http_3_takes(http3, package):
    depends = http3.run("dpkg-deb", "-f", package, "Depends")
    for name, least in TAKEN.items():
        (version,) = re.findall(rf"\b{name} \(>= ([^)]+)\)", depends)
        subprocess.run(["dpkg", "--compare-versions", version, "ge", least], check=True)


def test_a_fresh_debian_13_with_backports_serves_http_3(package):
    cert, key = certificate()
    site = Root({"index.html": b"installed"})
    with tempfile.TemporaryDirectory(prefix="gatling-package-") as path:
        make_root("trixie", path)
        os.chmod(path, 0o755)
        add_backports(path)
        enter = inside(path, "/", tempfile.gettempdir(), TOP)
        for command in (["update"], ["install", "-y", "--no-install-recommends", "-t", "trixie-backports", package, "curl"]):
            done = subprocess.run([*enter, "apt-get", "-q", *command], env=environment(DEBIAN_FRONTEND="noninteractive"), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)  # fmt: skip
            assert done.returncode == 0, done.stdout
        # in place of the program that is named
        launcher = [*enter, "sh", "-c", 'shift; exec /usr/bin/gatling "$@"', "sh"]
        with Server(package.parent.parent, site, "--tls-port", "0", "--cert", cert, "--key", key, "-n", as_root=True, launcher=launcher) as server:
            curl = [*enter, "curl", "--silent", "--show-error", "--http3-only", "--cacert", cert, "--write-out", " %{http_version}"]
            done = subprocess.run([*curl, f"https://127.0.0.1:{server.tls_port}/"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            assert (done.stdout, done.stderr) == ("installed 3", "")
    site.remove()
