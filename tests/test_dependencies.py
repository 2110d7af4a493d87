"""What is installed: locked by hashes in CI, without copyleft at run time."""

import re
import tomllib
from collections import defaultdict
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# At run time, with what reads Parquet.
DIRECT = [Requirement(text) for text in [*PROJECT["dependencies"], *EXTRAS["parquet"]]]
COPYLEFT = re.compile(
    r"GPL|General Public|MPL|Mozilla|EPL|Eclipse|CDDL|EUPL|CC-BY-SA", re.I
)
# The list of certificate authorities that requests uses: copyleft for changes to its
# own files only, of which there are none here.
WEAK = {"certifi": "MPL-2.0"}


LOCKS = ROOT / ".github"


@pytest.mark.promise("R22")
@pytest.mark.parametrize(
    ("lock", "needs"),
    [
        pytest.param(
            LOCKS / "requirements.txt",
            [*PROJECT["dependencies"], *EXTRAS["parquet"], *EXTRAS["dev"]],
            id="tests",
        ),
        pytest.param(
            LOCKS / "site.txt",
            [*PROJECT["dependencies"], *EXTRAS["docs"]],
            id="site",
        ),
    ],
)
def test_the_locks_of_ci_have_all_dependencies_with_hashes(lock, needs):
    text = lock.read_text()
    assert "://" not in text
    pins = lines_of_lock(text)
    versions = defaultdict(list)
    for pin in pins:
        assert not pin.startswith("-")  # an option
        assert re.search(r"==\S+ .*--hash=sha256:[0-9a-f]{64}", pin)
        name, version = re.match(r"([\w.-]+)\S*==(\S+)", pin).groups()
        versions[canonicalize_name(name)].append(version)
    for needed in map(Requirement, needs):
        if needed.name == PROJECT["name"]:  # an extra that has others
            continue
        pinned = versions[canonicalize_name(needed.name)]
        assert pinned, needed
        assert all(needed.specifier.contains(version) for version in pinned), needed


def lines_of_lock(text):
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.promise("R22")
@pytest.mark.parametrize("lock", ["requirements.txt", "site.txt"])
def test_pins_have_the_extras_that_other_packages_ask_for(lock):
    """Without them, pip before 23.3 says that coverage[toml] has no pin."""
    text = (LOCKS / lock).read_text()
    pinned_extras = {}
    for name, extras in re.findall(r"^([\w.-]+)(?:\[(.+)\])?==", text, re.MULTILINE):
        pinned_extras[canonicalize_name(name)] = set(extras.split(","))
    for distribution in metadata.distributions():
        name = canonicalize_name(distribution.name)
        if name not in pinned_extras:
            continue
        for needed in requirements_of(distribution):
            extras = pinned_extras.get(canonicalize_name(needed.name), set())
            assert needed.extras <= extras, f"{name} needs {needed}"


def requirements_of(distribution):
    """Return what a package needs here, without its extras."""
    requirements = [Requirement(text) for text in distribution.requires or []]
    return [needed for needed in requirements if applies(needed)]


def applies(needed):
    return needed.marker is None or needed.marker.evaluate({"extra": ""})


def licence(distribution):
    """Return what a package says of its licence; a text of many lines by its first."""
    fields = distribution.metadata
    expression = fields.get("License-Expression")
    if expression:
        return expression
    first_line = (fields.get("License") or "").strip().partition("\n")[0]
    classifiers = fields.get_all("Classifier", [])
    of_licence = [text for text in classifiers if text.startswith("License ::")]
    return " ".join([first_line, *of_licence])


@pytest.mark.promise("R22")
@pytest.mark.extras("pyarrow")
def test_no_dependency_at_run_time_has_a_copyleft_licence(figure):
    todo = [needed for needed in DIRECT if applies(needed)]
    licences = {}
    while todo:
        name = canonicalize_name(todo.pop().name)
        if name not in licences:
            distribution = metadata.distribution(name)
            licences[name] = licence(distribution)
            todo += requirements_of(distribution)
    assert len(licences) >= len(DIRECT)
    assert all(text.strip() for text in licences.values())
    copyleft = {name: text for name, text in licences.items() if COPYLEFT.search(text)}
    assert copyleft.keys() <= WEAK.keys(), copyleft
    figure(f"{len(licences)} packages at run time")
