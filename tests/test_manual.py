"""The manual pages: what they refer to is there, and what they quote is what the server says."""

import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
PAGES = {page.name: page.read_text() for page in sorted((TOP / "man").glob("*.[0-9]"))}
SERVER = ["gatling.8", "gatling-site.5", "gatling-from.7", "gatling-operate.7", "gatling-trust.7"]


def options(text):
    return set(re.findall(r"Fl Fl ([a-z-]+)", text))


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_leads_to_a_section_or_a_page(name):
    sections = set(re.findall(r"^\.S[hs] (.*)$", PAGES[name], re.MULTILINE))
    referred = re.findall(r"(?:^\.|\b)Sx (.*?)(?: [.,;:)]+)?$", PAGES[name], re.MULTILINE)
    assert [section for section in referred if section not in sections] == []
    ours = {page.rsplit(".", 1)[0] for page in PAGES} | {"gatling"}
    pages = [(page, number) for page, number in re.findall(r"Xr (\S+) (\d)", PAGES[name]) if page in ours or page.startswith("gatling-")]
    assert [page for page in pages if ".".join(page) not in PAGES] == []


def test_the_options_of_the_help_are_those_of_the_manual(plain):
    said = "".join(subprocess.run([plain / "gatling", "--help", *of], capture_output=True, text=True, check=True).stdout for of in ((), ("acme",)))
    helped = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", said, re.MULTILINE))
    listed = options("\n".join(re.findall(r"^\.It (.*Fl Fl .*)$", PAGES["gatling.8"].split(".Sh SIGNALS")[0], re.MULTILINE)))
    assert listed == helped


def test_the_limits_of_the_help_are_those_of_the_manual(plain):
    said = subprocess.run([plain / "gatling", "--help", "limits"], capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^\.It Cm ([a-z-]+) Ns =", PAGES["gatling.8"].split(".Sh LIMITS")[1], re.MULTILINE)
    assert set(listed) == set(re.findall(r"^ +([a-z-]+)=", said, re.MULTILINE)) and listed == sorted(listed)
    assert set(re.findall(r"Cm ([a-z]+-[a-z-]+)", PAGES["gatling-operate.7"])) - set(listed) == set()


@pytest.mark.parametrize("name", SERVER)
def test_an_option_that_a_page_names_is_in_the_list(name):
    listed = options("\n".join(re.findall(r"^\.It .*$", PAGES["gatling.8"], re.MULTILINE)))
    assert options(PAGES[name]) - listed == set()


def test_the_files_of_an_owner_are_in_the_pages_and_not_served():
    """Only names that begin so are kept from being served (site_file.h)."""
    source = (TOP / "gatling/files/site_file.c").read_text()
    names = re.findall(r'\[SITE_\w+\] = "([^"]+)"', source)
    assert len(names) == (TOP / "gatling/files/site_file.h").read_text().split("enum site_file {")[1].split("}")[0].count("SITE_") - 1
    assert [name for name in names if name[0] not in "_."] == []
    for page in ("gatling-site.5", "gatling.8", "gatling-trust.7"):
        named = {word for line in re.findall(r"^\.(?:It )?Pa (.*)$", PAGES[page], re.MULTILINE) for word in line.split()}
        assert set(names) - named == set(), page


def test_the_server_says_what_the_manual_quotes():
    source = "".join(file.read_text() for file in sorted((TOP / "gatling").rglob("*.c")))
    source = re.sub(r'"\s*"', "", source)
    quoted = re.findall(r'^\.It Li "(.*)"$', PAGES["gatling-operate.7"].split(".Sh DIAGNOSTICS")[1], re.MULTILINE)
    parts = [part.strip(" ,;:()") for line in quoted for part in re.split(r"\b(?:[A-Z]{2,}|N)\b", line.removeprefix("cannot "))]
    long = [part for part in parts if len(part) > 8]
    assert len(quoted) > 10 and len(long) >= len(quoted)
    assert [part for part in long if part not in source] == []
