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
    members = {}
    for module in modules:
        for name in module.__all__:
            member = getattr(module, name)
            if needs_example(member):
                members.setdefault(f"{member.__module__}.{name}", member)
    return members


def needs_example(member):
    if inspect.isclass(member):
        # A named tuple is what a function returns, which has the example.
        return not issubclass(member, tuple)
    return inspect.isfunction(member)


PUBLIC = public()


@pytest.mark.parametrize(("name", "member"), PUBLIC.items(), ids=PUBLIC)
def test_the_example_runs(name, member):
    [test] = doctest.DocTestFinder(recurse=False).find(member, name, globs={})
    may_lack_examples = name.startswith("precbench.ranking.statistics.")
    assert test.examples or may_lack_examples, "no example"
    report = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    failures = [text for text in report if "Failed example" in text]
    assert not failures, "".join(report)
