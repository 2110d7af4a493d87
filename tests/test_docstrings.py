"""Every public class and function has an example that runs."""

import doctest
import inspect
import pydoc
import re

import pytest

from scripts.pages import DOCS

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def public():
    """Return public classes and functions by their names in their modules."""
    listed = re.findall(
        r"^   (precbench\..+)$", (DOCS / "reference.md").read_text(), re.MULTILINE
    )
    modules = filter(inspect.ismodule, map(pydoc.locate, ["precbench", *listed]))
    found = {}
    for module in modules:
        for name in module.__all__:
            of = getattr(module, name)
            # its function has one
            is_result = inspect.isclass(of) and issubclass(of, tuple)
            if (inspect.isclass(of) or inspect.isfunction(of)) and not is_result:
                found.setdefault(f"{of.__module__}.{name}", of)
    return found


PUBLIC = public()


@pytest.mark.parametrize(("name", "member"), PUBLIC.items(), ids=PUBLIC)
def test_the_example_runs(name, member):
    [found] = doctest.DocTestFinder(recurse=False).find(member, name, globs={})
    assert found.examples or name.startswith("precbench.ranking.statistics."), (
        "no example"
    )
    told = []
    doctest.DocTestRunner(optionflags=FLAGS).run(found, out=told.append)
    failed = [text for text in told if "Failed example" in text]
    assert not failed, "".join(told)
