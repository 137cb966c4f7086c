"""What a visitor sees who reloads pages while a site is rebuilt: whole pages, mixed ones, errors. By hand, after "make check
ALL=1" or "make build/tools/next/installed build/tools/sveltekit/installed":

    python3 tests/rebuilt.py build              the builder empties and fills the directory that is served
    python3 tests/rebuilt.py build --switch     each release is a directory; the one that is served is a link to the last
    --only sveltekit --times 5
"""

import argparse
import collections
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / "tests/wire")]

from browser import Browser  # noqa: E402
from gatling import Root, Server  # noqa: E402
from test_built import PAGES, RELEASES  # noqa: E402

STARTED_MS = 3000  # what has not loaded by then is missing
SEEN_S = 10  # a release that is not seen by then never is
LOOK = f"""new Promise(done => {{
    const status = performance.getEntriesByType('navigation')[0].responseStatus, end = performance.now() + {STARTED_MS};
    const look = () => {{
        const seen = {RELEASES};
        if (status === 200 && document.querySelector('h1') && !seen.split(' ').every(r => r !== '') && performance.now() < end)
            setTimeout(look, 10);
        else
            done([status, seen]);
    }};
    look();
}})"""


class Site:
    """A copy of what the builder needs; out is what it makes."""

    def __init__(self, tools, name):
        self.root = Root()
        self.path = self.root.path / name
        subprocess.run(["cp", "-al", tools / name, self.path], check=True)
        # Written anew, since the copies share their content.
        self.numbered = [self.path / file for file in ("public/plain.css", "public/plain.js", "app/site.css", "static/plain.css", "static/plain.js",
                                                       "src/routes/site.css") if (self.path / file).exists()]  # fmt: skip

    def number(self, release):
        for file in self.numbered:
            text = file.read_text()
            file.unlink()
            head, _, tail = text.split('"')
            file.write_text(f'{head}"{release}"{tail}')

    def build(self, release):
        """Returns the process that builds."""
        self.number(release)
        return subprocess.Popen(["npm", "run", "build", "--silent"], cwd=self.path, env={**os.environ, "RELEASE": str(release)}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)  # fmt: skip


def publish(site, release):
    """Switches to a copy of what was built, as a deploy does."""
    copy, link = site.root.path / f"release-{release}", site.root.path / "new"
    subprocess.run(["cp", "-r", site.path / "out", copy], check=True)
    link.symlink_to(copy.name)
    link.rename(site.root.path / "current")


def kind(status, seen):
    releases = seen.split(" ")
    if status != 200:
        return f"status {status}"
    if not any(releases):
        return "another page"
    if "" in releases:
        return "incomplete"
    return "whole" if len(set(releases)) == 1 else "mixed"


def measure(build, name, times, switch):
    site = Site(TOP / "build/tools", name)
    assert site.build(0).wait() == 0
    if switch:
        publish(site, 0)
    counts, late, first = collections.Counter(), [], {}
    pages = itertools.cycle(PAGES)
    directory = site.root.path / "current" if switch else site.path / "out"
    with Server(build, directory, "-j", "1") as server, Browser() as browser:
        browser.go(server.url("/"))

        def look():
            browser.go(server.url(next(pages)))
            browser.reload()
            status, seen = browser.run(LOOK)
            found = kind(status, seen)
            counts[found] += 1
            first.setdefault(found, seen)
            return seen

        for release in range(1, times + 1):
            builder = site.build(release)
            while builder.poll() is None:
                look()
            assert builder.returncode == 0, "the builder failed"
            if switch:
                publish(site, release)
            began = time.monotonic()
            while look() != " ".join([str(release)] * 5) and time.monotonic() - began < SEEN_S:
                pass
            late.append(time.monotonic() - began)
    print(f"{name}, {'switched' if switch else 'in place'}, {times} times: {sum(counts.values())} pages: "
          + ", ".join(f"{number} {found}" for found, number in counts.most_common()) + f"; "
          + ("a new one is never seen" if max(late) > SEEN_S else f"a new one is seen after at most {max(late):.1f} s"))  # fmt: skip
    for found, seen in first.items():
        if found in ("mixed", "incomplete", "another page"):
            print(f"    {found}, for example: {seen!r} (page, bundled style and script, others)")
    site.root.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", choices=["next", "sveltekit"])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--switch", action="store_true")
    a = parser.parse_args()
    for name in [a.only] if a.only else ["next", "sveltekit"]:
        measure(a.build.absolute(), name, a.times, a.switch)


if __name__ == "__main__":
    main()
