"""Hashes of source code, so that a number is never kept when the code it came from has changed."""

from __future__ import annotations

import ast
import hashlib
import io
import sys
import tokenize
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

__all__ = ["code_of"]

_WITH_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def code_of(modules: Collection[str], within: Collection[str]) -> dict[str, str]:
    """Return a hash for each of some modules and of those that they import, directly or not.

    Parameters
    ----------
    modules : collection of str
        Full names.
    within : collection of str
        Patterns such as ``package.*``; a module that matches none is not followed.

    Returns
    -------
    dict of str to str
        Sorted by name. Comments, docstrings and empty lines change no hash, and neither does the
        machine: a compiled module has the hash of the source that it was compiled from.
    """
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found[module], imports = _read(module)
            waiting += [
                name for name in imports if any(fnmatchcase(name, pattern) for pattern in within)
            ]
    return dict(sorted(found.items()))


@cache
def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a module, and what it imports."""
    path = _file(module)
    if path.name.endswith(tuple(EXTENSION_SUFFIXES)):
        return str(import_module(module).SOURCE), ()
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return hashlib.sha256(_code(text, tree).encode()).hexdigest()[:12], _imports(tree)


def _imports(tree: ast.Module) -> tuple[str, ...]:
    """Return the modules that a module imports, and the members of packages, which may be some."""
    names = []
    for node in _statements(tree, executed=True):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in members if _is_module(name)]
            names += modules + [node.module] * (len(modules) < len(members))
    return tuple(dict.fromkeys(names))


def _statements(tree: ast.AST, executed: bool = False) -> Iterator[ast.AST]:
    """Walk the statements of a tree, or those but for what only type checkers see."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not (executed and isinstance(node, ast.If) and _is_for_type_checkers(node)):
            yield node
            children = ast.iter_child_nodes(node)
            waiting += [child for child in children if isinstance(child, _WITH_STATEMENTS)]


def _is_for_type_checkers(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_module(name: str) -> bool:
    parent = name.rpartition(".")[0]
    if not hasattr(sys.modules.get(parent) or import_module(parent), "__path__"):
        return False
    return find_spec(name) is not None


def _file(module: str) -> Path:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return Path(spec.origin)


def _code(text: str, tree: ast.Module) -> str:
    """Return a program without comments, docstrings and empty lines."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in _statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                for row in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                    lines[row - 1] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())
