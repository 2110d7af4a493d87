"""What is installed: locked by hashes in CI, without copyleft at run time."""

import re
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [Requirement(text) for text in [*PROJECT["dependencies"], *EXTRAS["parquet"]]]
COPYLEFT = re.compile(
    r"GPL|General Public|MPL|Mozilla|EPL|Eclipse|CDDL|EUPL|CC-BY-SA", re.I
)
# The list of certificate authorities that requests uses: copyleft for changes to its
# own files only, of which there are none here.
WEAK = {"certifi": "MPL-2.0"}


@pytest.mark.promise("R22")
@pytest.mark.parametrize(
    ("lock", "direct"),
    [
        ("requirements.txt", [*DIRECT, *map(Requirement, EXTRAS["dev"])]),
        (
            "site.txt",
            list(map(Requirement, [*PROJECT["dependencies"], *EXTRAS["docs"]])),
        ),
    ],
)
def test_the_locks_of_ci_have_all_dependencies_with_hashes(lock, direct):
    text = (ROOT / ".github" / lock).read_text()
    pins = text.replace("\\\n", " ").splitlines()
    pins = [line for line in pins if line and not line.startswith("#")]
    assert "://" not in text and not any(line.startswith("-") for line in pins)
    assert all(re.search(r"==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in pins)
    versions = {}
    for line in pins:
        [pin, version] = re.match(r"([\w.-]+)\S*==(\S+)", line).groups()
        versions.setdefault(canonicalize_name(pin), []).append(version)
    for needed in (r for r in direct if r.name != PROJECT["name"]):
        found = versions[canonicalize_name(needed.name)]
        assert all(needed.specifier.contains(version) for version in found), needed


@pytest.mark.promise("R22")
@pytest.mark.parametrize("lock", ["requirements.txt", "site.txt"])
def test_pins_have_the_extras_that_other_packages_ask_for(lock):
    """Without them, pip before 23.3 says that coverage[toml] has no pin."""
    text = (ROOT / ".github" / lock).read_text()
    pins = re.findall(r"^([\w.-]+)(?:\[(.+)\])?==", text, re.MULTILINE)
    extras = {canonicalize_name(name): {*extras.split(",")} for name, extras in pins}
    installed = {canonicalize_name(d.name): d for d in metadata.distributions()}
    for name in extras.keys() & installed.keys():
        for needed in map(Requirement, installed[name].requires or []):
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                missing = needed.extras - extras.get(
                    canonicalize_name(needed.name), set()
                )
                assert not missing, f"{name} needs {needed}"


def licence(distribution):
    """Return what a package says of its licence; a text of many lines by its first."""
    about = distribution.metadata
    classifiers = [
        c for c in about.get_all("Classifier", []) if c.startswith("License ::")
    ]
    first = (about.get("License") or "").strip().partition("\n")[0]
    return about.get("License-Expression") or " ".join([first, *classifiers])


@pytest.mark.promise("R22")
@pytest.mark.extras("pyarrow")
def test_no_dependency_at_run_time_has_a_copyleft_licence(figure):
    todo, licences = list(DIRECT), {}
    while todo:
        needed = todo.pop()
        name = canonicalize_name(needed.name)
        if name in licences or (
            needed.marker and not needed.marker.evaluate({"extra": ""})
        ):
            continue
        distribution = metadata.distribution(name)
        licences[name] = licence(distribution)
        todo += map(Requirement, distribution.requires or [])
    assert len(licences) >= len(DIRECT) and all(
        text.strip() for text in licences.values()
    )
    copyleft = {name for name, text in licences.items() if COPYLEFT.search(text)}
    assert copyleft <= set(WEAK), {name: licences[name] for name in copyleft}
    figure(f"{len(licences)} packages at run time")
