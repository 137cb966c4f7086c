"""The server answers as Netlify's engine and Cloudflare's asset server do, but for the differences in its manual."""

import re
from pathlib import Path

import pytest

import classes
import compare

TOP = Path(__file__).resolve().parent.parent.parent
SEED = "1"
LEAST = {"_redirects": 90, "_headers": 30}  # real files
PROBES = 5000  # for rules that are made up


@pytest.fixture(scope="module")
def found(first_build, netlify):
    """The differences by the name of their class."""
    with compare.upstream() as address:
        sites = compare.sites_for(compare.real_files(), address) + compare.made_up(SEED)
        assert sum(len(site.probes) for site in sites if "-m" in site.name) >= PROBES
        return compare.Comparison(first_build, netlify, sites, address).by_class()


def test_every_difference_is_in_the_manual(found):
    others = found.get(None, [])
    assert not others, "\n".join(map(str, [f"{len(others)} differences of no class", *others[:20]]))


@pytest.mark.parametrize("name", [one.name for one in classes.CLASSES])
def test_a_difference_in_the_manual_is_there(found, name):
    assert found.get(name), "no answer differs for this reason any more: remove the class, and its line in the manual"


def test_the_manual_names_the_differences():
    section = (TOP / "man/gatling-site.5").read_text().split(".Ss Differences from Netlify and Cloudflare Pages\n")[1].split("\n.Ss")[0]
    items = [" ".join(item.split()) for item in re.sub(r"(?m)^\.(?!It)\w+ ?|\\[-&]", "", section.replace(".Fl ", "-")).split("\n.It\n")[1:]]
    assert items == [one.sentence for one in classes.CLASSES]


@pytest.mark.parametrize("kind", LEAST)
def test_there_are_enough_real_files(kind):
    assert sum(kind in name for name in compare.real_files()) >= LEAST[kind]
