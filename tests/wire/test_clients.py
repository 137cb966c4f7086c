"""The server with programs that people use: testssl.sh, an ACME client, h2load, a browser, apt, curl."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from authority import authority, trusting_launcher
from gatling import Root, Server, certificate, eventually
from test_https import FLAGS, Tls, install, names

pytestmark = pytest.mark.others

# --- testssl.sh ---

CA = """
[req]
distinguished_name = dn
[dn]
[v3]
subjectAltName = DNS:localhost
extendedKeyUsage = serverAuth
crlDistributionPoints = URI:http://localhost/none.crl
"""


def issued(directory):
    """Returns a certificate for localhost like those of an authority, valid for 90 days, its key,
    and the authority."""
    (directory / "config").write_text(CA)
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=authority -days 365 -keyout ca.key -out ca.pem",
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout key.pem -out request.pem",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 90 -extfile config -extensions v3 -out cert.pem",
    ):
        subprocess.run(["openssl", *command.split()], cwd=directory, check=True, capture_output=True)
    (directory / "key.pem").chmod(0o644)
    return directory / "cert.pem", directory / "key.pem", directory / "ca.pem"


def test_testssl_finds_nothing_above_low(first_build, files):
    directory = Root({}).path
    cert, key, authority = issued(directory)
    with Tls(first_build, files, *FLAGS, "--cert", cert, "--key", key, "--hsts", "31536000") as server:
        result = directory / "found.json"
        subprocess.run(
            ["testssl", "--quiet", "--color", "0", "--warnings", "off", "--nodns", "none", "--openssl", "/usr/bin/openssl",
             "-p", "-s", "-f", "-P", "-S", "-h", "-U", "--ip", "127.0.0.1", "--add-ca", authority, "--jsonfile", result,
             f"https://localhost:{server.tls_port}"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False,
        )  # fmt: skip
    found = {item["id"]: item for item in json.loads(result.read_text())}
    secrecy = found["FS" if "FS" in found else "PFS"]  # its name in 3.2, and before
    assert found["TLS1_3"]["severity"] == secrecy["severity"] == found["BEAST"]["severity"] == "OK"  # were tested
    bad = [item for item in found.values() if item["severity"] in ("MEDIUM", "HIGH", "CRITICAL", "FATAL")]
    assert not bad, bad


# --- an authority, and its client (RFC 8555) ---


@pytest.mark.skipif(os.geteuid() != 0, reason="the client trusts the authority in a mount namespace of its own")
def test_an_acme_client_proves_the_name_through_the_webroot_and_the_certificate_is_taken_up(first_build):
    root, directory = Root({"index.html": b"hello"}), Root({}).path
    challenges = root.path / ".well-known" / "acme-challenge"
    challenges.mkdir(parents=True)
    install(root.path / "server.pem", *certificate("DNS:first"))
    with Tls(first_build, root, *FLAGS, "--https-redirect") as server, authority(directory, server.plain_port) as (url, _):
        mounted = trusting_launcher(directory)

        def uacme(*words):
            subprocess.run([*mounted, "uacme", "-c", directory / "state", "-a", url, *words], check=True, timeout=60,
                           capture_output=True, env=os.environ | {"UACME_CHALLENGE_PATH": str(challenges)})  # fmt: skip

        uacme("-y", "new")
        uacme("-t", "EC", "-h", "/usr/share/uacme/uacme.sh", "issue", "example.test")
        state = directory / "state"
        install(root.path / "example.test.pem", state / "example.test" / "cert.pem", state / "private" / "example.test" / "key.pem")

        def taken_up():
            with server.connect(name="example.test") as c:
                return names(c) == "DNS:example.test" and c.get("/").body == b"hello"

        eventually(taken_up)


# --- load ---


def test_h2load(first_build, files):
    cert, key = certificate()
    with Server(first_build, files, "-j", "2", "--cert", cert, "--key", key, "--tls-port", "0") as server:
        for url, words in ((f"https://127.0.0.1:{server.tls_port}", []), (f"http://127.0.0.1:{server.plain_port}", []),
                           (f"https://127.0.0.1:{server.tls_port}", ["--h1"])):  # fmt: skip
            done = subprocess.run(["h2load", "-n", "2000", "-c", "20", "-m", "10", *words, f"{url}/small.bin", f"{url}/dir/"],
                                  capture_output=True, text=True, timeout=120, check=True)  # fmt: skip
            assert "2000 succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout, done.stdout


# --- a browser ---

PAGE = """<!doctype html><meta charset=utf-8><title>100</title><link rel=icon href=0.svg><body>
<script>
for (let n = 0; n < 100; n++) document.body.append(Object.assign(new Image(), {src: n + ".svg"}));
addEventListener("load", () => {
  const loaded = [...document.images].filter(image => image.complete && image.naturalWidth == 7).length;
  const protocols = new Set(performance.getEntriesByType("resource").map(entry => entry.nextHopProtocol));
  document.body.textContent = "loaded " + loaded + " by " + [...protocols].join();
});
</script>
"""
IMAGE = '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7"><text>{}</text></svg>'


@pytest.mark.parametrize("flags,protocol", [((), "h2"), (("--disable-http2",), "http/1.1")])
def test_a_browser_loads_a_page_with_100_images(first_build, flags, protocol):
    root = Root({"index.html": PAGE.encode(), **{f"{n}.svg": IMAGE.format(n).encode() for n in range(100)}})
    cert, key = certificate()
    profile = Root({}).path
    with Server(first_build, root, "-j", "1", "--cert", cert, "--key", key, "--tls-port", "0") as server:
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--ignore-certificate-errors", "--no-proxy-server", "--enable-logging=stderr", "--dump-dom", *flags,
             f"https://localhost:{server.tls_port}/"],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert f"loaded 100 by {protocol}" in done.stdout, done.stdout + done.stderr
        assert "CONSOLE" not in done.stderr, done.stderr
        assert sum("200" in line for line in server.lines) >= 101



# --- downloads that are continued ---

APT = Path("/usr/lib/apt/methods/http")  # what apt downloads with: it says in lines what it does


@pytest.fixture
def package():
    """A file of which the first answer has only the date, and a client's directory with its first half."""
    content = random.Random(2).randbytes(6_000_000)
    root, there = Root({"package.deb": content}), Root({"package.deb": content[:3_000_000]})
    for place in (root, there):
        os.utime(place.path / "package.deb", (1_500_000_000,) * 2)
    yield root, there.path / "package.deb", content
    root.remove()
    there.remove()


@pytest.mark.skipif(not APT.exists(), reason="apt is not installed")
def test_apt_continues_a_package(first_build, package):
    root, part, content = package
    asked = "601 Configuration\nConfig-Item: APT::Sandbox::User=root\nConfig-Item: Acquire::http::Proxy=DIRECT\n\n600 URI Acquire\nURI: {}\nFilename: {}\n\n"
    with Server(first_build, root, "-j", "1") as server:
        with subprocess.Popen([APT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin"}) as apt:
            apt.stdin.write(asked.format(server.url("/package.deb"), part))
            apt.stdin.flush()
            said = []
            for line in apt.stdout:
                said.append(line)
                if line[:3] in ("201", "400", "401"):  # done, or failed
                    apt.stdin.close()
    assert "201 URI Done\n" in said and "Resume-Point: 3000000\n" in said, "".join(said)
    assert part.read_bytes() == content


def test_curl_continues_a_download_by_its_date(first_build, package):
    root, part, content = package
    with Server(first_build, root, "-j", "1") as server:
        for date, status, sent in (("Fri, 14 Jul 2017 02:40:00 GMT", 206, 3_000_000), ("Fri, 14 Jul 2017 02:40:01 GMT", 200, 6_000_000)):
            target = part.with_name(str(status))
            arguments = ["-r", "3000000-", "-H", "If-Range: " + date, "-o", target, "-w", "%{http_code} %{size_download}"]
            said = subprocess.run(["curl", "-sf", *arguments, server.url("/package.deb")], capture_output=True, text=True, timeout=60, check=True)
            assert said.stdout == f"{status} {sent}"
            assert target.read_bytes() == content[-sent:]
        subprocess.run(["curl", "-sf", "-C", "-", "-H", "If-Range: Fri, 14 Jul 2017 02:40:00 GMT", "-o", part, server.url("/package.deb")], timeout=60, check=True)
    assert part.read_bytes() == content
