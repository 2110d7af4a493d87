"""Surroundings of the tests, real data, and a small experiment of one's own."""

import gc
import ipaddress
import os
import shutil
import signal
import socket
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from precbench.data.cards import catalogue
from precbench.report import sheet
from precbench.solvers import SOLVERS
from tests.helpers import run_in_this_process, small_experiment, succeed
from tests.promises import PROMISES


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="the full size of measurements"
    )


def pytest_collection_modifyitems(items):
    """Mark what needs real data or packages, and note which promises a test keeps."""
    for item in items:
        mark_packages(item)
        mark_real_data(item)
        note_promises(item)


def mark_packages(item):
    """Mark a test of a solver or a file that needs a package; skip it without."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    for package in {package_of(value) for value in parameters} - {None}:
        item.add_marker(pytest.mark.extras(package))
    for mark in item.iter_markers("extras"):
        missing = [name for name in mark.args if find_spec(name) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))


def mark_real_data(item):
    """Mark a test that needs real data; skip it without."""
    if "mirror" in item.fixturenames:
        item.add_marker("real_data")
    if item.get_closest_marker("real_data") and MIRROR is None:
        item.add_marker(pytest.mark.skip(reason=NO_MIRROR))


def note_promises(item):
    """Note which promises a test keeps, for tests/promises.py."""
    for mark in item.iter_markers("promise"):
        for name in mark.args:
            if name not in PROMISES:
                raise pytest.UsageError(f"{item.nodeid}: there is no promise {name}")
            item.user_properties.append(("promise", name))


# The packages that read files, by the suffix
FORMATS = {"parquet": "pyarrow", "xlsx": "python_calamine"}


def package_of(value):
    """Return the optional package that a parameter of a test needs, if any.

    The parameter may be the suffix of a file, or a solver, its class or its name.
    """
    if isinstance(value, str) and value.removeprefix(".") in FORMATS:
        return FORMATS[value.removeprefix(".")]
    solver = value
    if isinstance(value, str) and value in SOLVERS.built_in:
        solver = SOLVERS[value]
    elif isinstance(value, partial):
        solver = value.func
    library = getattr(solver, "library", None)
    if not library or not library.packages:
        return None
    package = library.packages[0]
    if package == "scikit-learn":  # always installed
        return None
    return package


def pytest_collection_finish():
    """Spare the collector of garbage what modules hold, which it would look through
    each time.
    """
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def size(request):
    """Return a function that chooses of ``size(quick, full)`` by ``--full``."""
    is_full = request.config.getoption("--full")
    return lambda quick, full: full if is_full else quick


@pytest.fixture
def figure(request):
    """Return a function that notes what a test has seen, beside its promise.

    Texts such as "5 kills" of several tests are added up.
    """
    return lambda text: request.node.user_properties.append(("figure", text))


def pytest_configure(config):
    """Choose the number of examples, and take interrupts.

    A shell without job control lets what it starts with ``&`` ignore interrupts.
    """
    gc.disable()  # while modules are imported and tests collected
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    full = config.getoption("--full")
    hypothesis.settings.register_profile(
        "ours", max_examples=1000 if full else 30, deadline=None
    )
    hypothesis.settings.load_profile("ours")


# --- surroundings ---


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory):
    """Return the folder that all processes of the tests share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def surroundings(session_folder):
    """Give all tests an empty home, one cache, no mirror, and no way to the network."""
    home = session_folder / "home"
    home.mkdir(exist_ok=True)
    settings = [name for name in os.environ if name.startswith("PRECBENCH_")]
    folders = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MPLCONFIGDIR"]
    with pytest.MonkeyPatch.context() as patch:
        for name in [*settings, *folders]:
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(home))
        # One cache, so that each data set is prepared once.
        patch.setenv("PRECBENCH_CACHE", str(session_folder / "cache"))
        refuse_connections(patch)
        yield


def refuse_connections(patch):
    """Refuse every connection but those within this machine."""
    connect = socket.socket.connect

    def connect_here(self, address):
        if self.family != socket.AF_UNIX and not is_loopback(address[0]):
            raise ConnectionRefusedError(f"a test would connect to {address}")
        return connect(self, address)

    patch.setattr(socket.socket, "connect", connect_here)
    # In processes that a test starts, where nothing listens at this port.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        patch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        patch.setenv(name, "127.0.0.1,localhost")


def is_loopback(host):
    """Return whether an address is one of this machine.

    A name other than localhost is not.
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Give the test an empty cache of its own, and return its folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PRECBENCH_CACHE", str(folder))
    return folder


# --- real data ---

MIRROR = os.environ.get("PRECBENCH_MIRROR")  # before `surroundings` removes it
NO_MIRROR = "needs real data: set PRECBENCH_MIRROR to a folder that holds them"


@pytest.fixture(scope="session")
def mirror():
    """Return the folder with the real files, laid out like a mirror."""
    return Path(MIRROR)


@pytest.fixture
def real_data(mirror, monkeypatch):
    """Let the commands of the test read the real files."""
    monkeypatch.setenv("PRECBENCH_MIRROR", str(mirror))


# Before `not_drawn` replaces them
RENDER = sheet._rendered
LAY_OUT = sheet._lay_out


@pytest.fixture
def drawn(monkeypatch):
    """Figures as a user gets them.

    Elsewhere their files stay empty, or there are only PDFs.
    """
    monkeypatch.setattr(sheet, "_rendered", RENDER)
    monkeypatch.setattr(sheet, "_lay_out", LAY_OUT)


@pytest.fixture
def drawn_without_fonts(monkeypatch):
    """Figures as PDF only, without layout or fonts, which take longer than all the
    rest.
    """
    figures = []

    def render(figure, path):
        if path.suffix != ".pdf":
            return b""
        figures.append(figure)
        return RENDER(figure, path)

    monkeypatch.setattr(
        "matplotlib.backends.backend_pdf.PdfFile.writeFonts",
        lambda pdf: pdf.writeObject(pdf.fontObject, {}),
    )
    monkeypatch.setattr(sheet, "_rendered", render)
    return figures


@pytest.fixture
def laid_out(monkeypatch):
    """Figures with all their parts in place, by the names of the files that are not
    written.
    """
    figures = {}

    def render(figure, path):
        figures[path.stem] = figure
        return b""

    monkeypatch.setattr(sheet, "_rendered", render)
    monkeypatch.setattr(sheet, "_lay_out", LAY_OUT)
    return figures


@pytest.fixture(scope="session", autouse=True)
def not_drawn():
    """Leave the files of figures without a drawing, unless a test asks for more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sheet, "_rendered", lambda *_: b"<svg></svg>\n")
        patch.setattr(sheet, "_lay_out", lambda figure: figure.set_layout_engine(None))
        yield


@pytest.fixture
def work_folder(tmp_path, monkeypatch):
    """The folder of the test, in which commands and relative paths begin."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def add_card(monkeypatch):
    """Return a function that adds a card, at a path of its own, to the registry."""

    def add(card, path="no such file"):
        paths = catalogue._paths() | {card.name: path}
        read = catalogue._card

        def read_or_added(path_to_read):
            return card if path_to_read == path else read(path_to_read)

        monkeypatch.setattr(catalogue, "_paths", lambda: paths)
        monkeypatch.setattr(catalogue, "_card", read_or_added)
        return card

    return add


@pytest.fixture
def in_this_process(monkeypatch):
    """Trials without workers, which start anew for each folder, and take longer than
    small trials.

    The tests of runs, workers, faults and kills have workers.
    """
    run_in_this_process(monkeypatch)


@pytest.fixture
def no_page(monkeypatch):
    """No page of a run, which takes longer than the run of a small experiment."""
    from precbench.report.html.page import Page

    page = Page(html="", title="", source=None, marks=[], verdicts="")
    monkeypatch.setattr("precbench.report.folder.experiment_page", lambda *_: page)


@pytest.fixture
def small(tmp_path, no_page):
    """A config beside its CSV file; returns a function that rewrites the config."""
    return small_experiment(tmp_path)


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory):
    """Results of two solvers on two splits, with records and without figures."""
    folder = tmp_path_factory.mktemp("finished")
    solvers = "{sgd-avg: {eta0: {tune: [0.1, 1.0]}}, perceptron-avg: }"
    config = small_experiment(folder)(solvers=solvers, plots="[accuracy-time, roc]")
    with pytest.MonkeyPatch.context() as patch:
        run_in_this_process(patch)
        succeed("run", config, "--out", folder / "results", "--no-plots")
    return folder / "results"


@pytest.fixture
def finished(finished_once, tmp_path):
    """A copy of these results, in the folder small."""
    return Path(shutil.copytree(finished_once, tmp_path / "results"))
