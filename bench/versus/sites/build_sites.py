"""Builds five sites with the tools that people use, three times each: as they are (a), after a small change (b), and again
without one (c).

    build_sites.py DIRECTORY [--only SITE,...]

makes DIRECTORY/SITE/a, b and c. The versions of the tools are in package.json and requirements.txt; what these take from npm in
turn is of the day BEFORE, so that no long lists have to be kept. Hugo is the system's. The text of the sites is that of the
manual pages here (mandoc).

What was built stays until the sources or this program change; the text of the manual may be older then.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MANUAL = HERE.parents[2] / "man"
BEFORE = "2026-11-30"
CHAPTERS = 60
CHAPTER_MIN = 600  # characters; shorter ones have hardly a paragraph
RELEASES = ("a", "b", "c")
SENTENCE = "Whoever reads this today sees one sentence more than those who came yesterday."
COLOUR = "#226699", "#2266aa"


def chapters():
    """Returns titles and texts, in Markdown, of sections of the manual."""
    found = {}
    for page in sorted(MANUAL.glob("gatling*.[5-8]")):
        text = subprocess.run(["mandoc", "-T", "markdown", page], capture_output=True, text=True, check=True).stdout
        text = re.sub(r"(?<=\w)\n(?=[^\n#*0-9`>\t])", " ", text)  # a sentence on one line
        for section in re.split(r"^##? ", text, flags=re.MULTILINE)[1:]:
            title, _, body = section.partition("\n")
            if len(body) >= CHAPTER_MIN:
                found.setdefault(title.strip().capitalize(), re.sub(r"^#+ ", "### ", body.strip(), flags=re.MULTILINE))
    return list(found.items())[:CHAPTERS]


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


class Site:
    """builds: the directory that the tool writes. changes: of files, what is replaced by what."""

    def __init__(self, name, builds, command, changes, prepare, stale=()):
        self.name, self.builds, self.command, self.changes = name, builds, command, changes
        self.prepare, self.stale = prepare, stale


def as_json(*directory):
    def prepare(path):
        rows = [{"slug": slug(title), "title": title, "text": text} for title, text in chapters()]
        path.joinpath(*directory, "chapters.json").write_text(json.dumps(rows, indent=1))

    return prepare


def as_pages(path):
    """A page a chapter, for the builders of documentation. The first is named so."""
    docs = path / "docs"
    docs.mkdir()
    for number, (title, text) in enumerate(chapters()):
        docs.joinpath(f"{slug(title) if number else 'first'}.md").write_text(f"# {title}\n\n{text}\n\nSee also the other pages.\n")


def as_pages_with_front(path):
    as_pages(path)
    path.joinpath("docs", "index.md").write_text("# Handbook\n\nHow the server is run and measured.\n")


def as_posts(path):
    posts = path / "content" / "posts"
    posts.mkdir(parents=True)
    for number, (title, text) in enumerate(chapters()):
        day = f"20{25 - number // 12}-{12 - number % 12:02}-01"
        posts.joinpath(f"{slug(title) if number else 'first'}.md").write_text(
            f"---\ntitle: {json.dumps(title)}\ndate: {day}\n---\n\n{text}\n\nSee also the other posts.\n")  # fmt: skip


PARAGRAPH = "See also the other p", f"{SENTENCE}\n\nSee also the other p"
SITES = (
    Site("vite", "dist", ["npm", "run", "build"],
         [("src/home.jsx", "every minute.", f"every minute. {SENTENCE}"), ("src/style.css", *COLOUR)], as_json("src")),
    Site("next", "out", ["npm", "run", "build"],
         [("app/page.jsx", "run and measured.", f"run and measured. {SENTENCE}"), ("app/style.css", *COLOUR)], as_json(), [".next"]),
    Site("mkdocs", "site", ["venv/bin/mkdocs", "build", "-q"], [("docs/first.md", *PARAGRAPH)], as_pages_with_front),
    Site("hugo", "public", ["hugo", "--minify"], [("content/posts/first.md", *PARAGRAPH), ("assets/style.css", *COLOUR)], as_posts, ["resources"]),
    Site("docusaurus", "build", ["npm", "run", "build"], [("docs/first.md", *PARAGRAPH)], as_pages, [".docusaurus", "node_modules/.cache"]),
)  # fmt: skip


def run(path, *words):
    environment = os.environ | {"CI": "1", "NO_UPDATE_NOTIFIER": "1"}
    with open(path / "log", "ab") as log:
        if subprocess.run(words, cwd=path, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment).returncode != 0:
            sys.exit(f"build_sites: {' '.join(map(str, words))} fails in {path}: see its log")


def install(path):
    if path.joinpath("package.json").exists():
        run(path, "npm", "install", "--before", BEFORE, "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund")
    if path.joinpath("requirements.txt").exists():
        run(path, sys.executable, "-m", "venv", "venv")
        run(path, "venv/bin/pip", "install", "-q", "--disable-pip-version-check", "-r", "requirements.txt")


def build(site, path):
    """Builds a site in path."""
    work = path / "work"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(HERE / site.name, work)
    install(work)
    site.prepare(work)
    for release in RELEASES:
        if release == "b":
            for name, old, new in site.changes:
                text = work.joinpath(name).read_text()
                assert text.count(old) == 1, (name, old)
                work.joinpath(name).write_text(text.replace(old, new))
        for name in (site.builds, *site.stale):
            shutil.rmtree(work / name, ignore_errors=True)
        run(work, *site.command)
        work.joinpath(site.builds).rename(path / release)
    shutil.rmtree(work)


def state(site):
    """Returns a digest of what a site is made of, without its text."""
    files = sorted([Path(__file__), *(file for file in HERE.joinpath(site.name).rglob("*") if file.is_file())])
    return hashlib.sha256(b"\0".join(file.name.encode() + b"\0" + file.read_bytes() for file in files)).hexdigest()


@contextlib.contextmanager
def locked(path):
    """Only one process may build at a time."""
    path.mkdir(parents=True, exist_ok=True)
    with open(path / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_all(directory, only=None):
    """Builds those sites that are not there yet. Returns their names."""
    chosen = [site for site in SITES if not only or site.name in only]
    with locked(directory):
        for site in chosen:
            stamp = directory / site.name / "made-of"
            if not stamp.exists() or stamp.read_text() != state(site):
                print(f"building {site.name}", file=sys.stderr)
                build(site, directory / site.name)
                stamp.write_text(state(site))
    return [site.name for site in chosen]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","))
    options = parser.parse_args()
    build_all(options.directory.resolve(), options.only)


if __name__ == "__main__":
    main()
