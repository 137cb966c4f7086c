"""Which builds are tested. "make check" names them; by hand:

    python3 -m pytest tests --builds epoll=build
"""

import collections
import contextlib
import fcntl
import filecmp
import functools
import os
import re
import sys
import tempfile
import time
from pathlib import Path, PosixPath

import pytest

TOP = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / path) for path in ("tests/wire", "tests/faults", "tests/bench", "bench", "bench/versus", "bench/suite", "tests/http3")]

pytest.register_assert_rewrite("answers")  # it expects, as tests do: a failure shows both sides

# pylint: disable=wrong-import-position
from gatling import OverTls  # noqa: E402
from over import OverHttp3  # noqa: E402

STARTED = time.monotonic()
# Tests that must run alone have names that end with this: a scheduler of pytest-xdist only knows
# names.
ALONE = "@alone"
# Fixtures that take more than the first build: other builds, and what comes from registries of packages.
MORE = {"plain", "threads", "venv", "node", "netlify", "sites", "h2spec", "http3"}
# Of a test, without its fixtures, one of which may build for minutes.
HTTP3_TIMEOUT_S = 300
# Files whose tests take long, and share nothing unless their parameters are the same.
SPLIT = ("test_bare.py", "test_kernel_tls.py", "test_make.py")


def pytest_addoption(parser):
    parser.addoption("--builds", default="epoll=build",
                     help="NAME=DIR,...: the wire and unit tests run for each; for the name tls, those of the wire over TLS; for http3, those that are decided")  # fmt: skip
    parser.addoption("--threads", default="", help="a build with the thread sanitizer: its workers and units are tested")
    parser.addoption("--venv", default="build/venv", help="where packages of PyPI are installed")
    parser.addoption("--node", default="build/tools/express/node_modules", help="where packages of npm are installed")
    parser.addoption("--netlify", default="build/tools/netlify/node_modules", help="where Netlify's engine is installed")
    parser.addoption("--sites", default="build/tools", help="where the sites of next and sveltekit are built")
    parser.addoption("--h2spec", default="build/tools/h2spec", help="where that program is")
    parser.addoption("--http3", default="build/http3", help="where a build with HTTP/3 and its Debian 13 are made")
    parser.addoption("--make", default="", help="TARGET,...: of GNUmakefile, to be made beside the tests")
    parser.addoption("--plain", default="build", help="the build that figures are taken of")
    parser.addoption("--objects", default="build/obj", help="where the object files of a build are")
    parser.addoption("--core", action="store_true", help="only what takes the first build, measures nothing and runs no programs of others")


def pytest_configure(config):
    config.addinivalue_line("markers", "clear: of the wire, not over TLS: it is about ports, or its client has no TLS")
    config.addinivalue_line("markers", "decided: about what is answered or printed, not how it travels: not with each mechanism")
    config.addinivalue_line("markers", "tcp: decided, but not over HTTP/3: a test that sends octets of HTTP/1.1 or of HTTP/2, whose client is a program, or whose files are on this system alone")
    config.addinivalue_line("markers", "moving: about how content moves: not with all ways to wait")
    config.addinivalue_line("markers", "others: runs programs of others, which not everybody has")
    config.addinivalue_line("markers", "alone: measures: no other test runs meanwhile, and it may be noise three times")
    # served files must be readable for everybody, even below pytest's private directory
    os.umask(0o022)


def is_core(item):
    return MORE.isdisjoint(item.fixturenames) and not item.get_closest_marker("others") and not item.get_closest_marker("alone")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """With --core, leaves tests out. Orders them so that those of one file and one build are next to
    each other, since they share a server, which ends where another build begins; pytest itself mixes
    the builds. Tests without a build come first, since some take minutes, then files with many tests,
    so that no process is left with one at the end; those that run alone come last, as all others
    would wait for each of them."""

    if config.getoption("core"):
        config.hook.pytest_deselected(items=[item for item in items if not is_core(item)])
        items[:] = filter(is_core, items)

    size = collections.Counter((item.path, place_of_build(item)) for item in items)

    def place(item):
        build = place_of_build(item)
        long = item.path.name in SPLIT or "http3" in item.fixturenames
        return bool(item.get_closest_marker("alone")), build > 0, not long, -size[item.path, build], item.path, build

    items.sort(key=place)
    for item in items:
        if item.get_closest_marker("alone") and "PYTEST_XDIST_WORKER" in os.environ:
            item._nodeid += ALONE  # pylint: disable=protected-access
        if item.get_closest_marker("alone") or item.path.parent.name in ("bench", "http3"):  # time matters there, too
            item.add_marker(pytest.mark.flaky(reruns=2))
        if "http3" in item.fixturenames or isinstance(build_of(item), OverHttp3):
            item.add_marker(pytest.mark.timeout(HTTP3_TIMEOUT_S, func_only=True))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Assigns the tests of one file and one build to one process, which sets up once what they
    share."""
    from xdist.scheduler import LoadScopeScheduling  # pylint: disable=import-outside-toplevel

    class ByFileAndBuild(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if nodeid.endswith(ALONE):
                return ALONE
            file, _, test = nodeid.partition("::")
            first = re.search(r"\[([^]-]*)", test)
            return file + (first[1] if first and (first[1] in builds(config) or file.endswith(SPLIT)) else "")

    return ByFileAndBuild(config, log)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Ends with a line that is the same whether tests failed or not; with -qq pytest has none."""
    yield
    if terminalreporter.verbosity < -1:
        count = {name: len(terminalreporter.getreports(name)) for name in ("passed", "failed", "error", "skipped")}
        print(f"{count['passed']} passed, {count['failed'] + count['error']} failed, {count['skipped']} skipped in {time.monotonic() - STARTED:.0f} s")


@contextlib.contextmanager
def locked(name, how):
    with open(Path(tempfile.gettempdir(), f"gatling-tests-{os.geteuid()}-{name}"), "a", encoding="ascii") as file:
        fcntl.flock(file, how)
        yield


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """A test that runs alone closes the door, and waits until all others are out; none may enter
    meanwhile."""
    with contextlib.ExitStack() as out:
        with contextlib.ExitStack() as door:
            door.enter_context(locked("door", fcntl.LOCK_EX))
            alone = item.get_closest_marker("alone")
            out.enter_context(locked("room", fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
            if alone:
                out.push(door.pop_all())
        yield


ENOUGH = ("epoll", "tls", "http3")  # for what is decided
MOVERS = (*ENOUGH, "poll", "uring")  # for how content moves: by sendfile(2) or TLS, from a mapping, by io_uring
OVER = {"tls": OverTls, "http3": OverHttp3}  # names of builds that are tested so


@functools.cache
def builds(config):
    """Returns the builds by name. Each is a single object; for an equal but different one, pytest
    would start the servers again."""
    pairs = (item.split("=", 1) for item in config.getoption("builds").split(",") if item)
    return {name: OVER.get(name, PosixPath)(TOP / path) for name, path in pairs}


def build_of(item):
    return item.callspec.params.get("build") if hasattr(item, "callspec") else None


def place_of_build(item):
    return next((place for place, build in enumerate(builds(item.config).values(), 1) if build is build_of(item)), 0)


def pytest_generate_tests(metafunc):
    named = dict(builds(metafunc.config))
    threads = metafunc.config.getoption("threads")
    if "build" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker
        if marked("clear") or metafunc.definition.path.parent.name != "wire":
            named = {name: path for name, path in named.items() if name not in OVER}
        if marked("tcp") or not marked("decided"):
            named.pop("http3", None)
        for marker, enough in (("decided", ENOUGH), ("moving", MOVERS)):
            if marked(marker) and not named.keys().isdisjoint(enough):
                named = {name: path for name, path in named.items() if name in enough}
        metafunc.parametrize("build", named.values(), ids=named.keys(), indirect=True, scope="session")
    if "make_target" in metafunc.fixturenames:
        metafunc.parametrize("make_target", [target for target in metafunc.config.getoption("make").split(",") if target])
    if "unit_program" in metafunc.fixturenames:
        named = {name: path for name, path in named.items() if name not in OVER}
        if threads:
            named["threads"] = TOP / threads
        programs = unit_programs(named)
        metafunc.parametrize("unit_program", programs.values(), ids=programs.keys())


def unit_programs(named):
    """Returns the unit tests of the builds, {BUILD-NAME: (path, twin)}. Programs that do not use
    io/ are the same in several builds: the first one runs, and is the twin of the others. For the
    thread sanitizer, which finds nothing in a single thread, only programs that start threads are
    included."""
    programs = {}
    for build, path in named.items():
        for program in sorted((path / "tests").glob("test_*")):
            if build == "threads" and b"pthread_create" not in program.read_bytes():
                continue
            first = (other for other, twin in programs.values() if not twin and other.name == program.name)
            twin = next((other for other in first if filecmp.cmp(other, program, shallow=False)), None)
            programs[f"{build}-{program.name}"] = program, twin
    return programs


@pytest.fixture(scope="session")
def build(request):
    if isinstance(request.param, OverHttp3):
        request.param.make(TOP / request.config.getoption("venv"))
    return request.param


@pytest.fixture(scope="session")
def plain(request):
    return TOP / request.config.getoption("plain")


@pytest.fixture(scope="session")
def objects(request):
    return TOP / request.config.getoption("--objects")


@pytest.fixture(scope="session")
def first_build(request):
    """Returns the first build, with the sanitizers, for what does not depend on the mechanism."""
    return next(iter(builds(request.config).values()))


@pytest.fixture(scope="session")
def venv(request):
    return TOP / request.config.getoption("venv")


@pytest.fixture(scope="session")
def node(request):
    return TOP / request.config.getoption("--node")


@pytest.fixture(scope="session")
def netlify(request):
    return TOP / request.config.getoption("--netlify")


@pytest.fixture(scope="session")
def sites(request):
    return TOP / request.config.getoption("--sites")


@pytest.fixture(scope="session")
def h2spec(request):
    return TOP / request.config.getoption("--h2spec")


@pytest.fixture(scope="session")
def threads(request):
    directory = request.config.getoption("threads")
    if not directory:
        pytest.skip("no build with the thread sanitizer")
    return TOP / directory
