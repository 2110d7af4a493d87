"""Build the kernels; everything else is declared in pyproject.toml.

``PRECBENCH_BUILD=sanitize`` (address and undefined-behaviour sanitizers) or ``checked``
(every index compared with its bounds, no instructions that some processors lack) makes
a package for tests; see ``make sanitize``.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CCompilerError

# No -ffast-math, no -march, no contraction: identical bits on every CPU. Scores of
# dense rows take instructions of four where there are such, which are the same
# operations (dense.h).
FLAGS = ["-O3", "-g0", "-ffp-contract=off"]
DIRECTIVES = {
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "language_level": 3,
}
BUILD = os.environ.get("PRECBENCH_BUILD", "")
LINK: list[str] = []
if BUILD == "sanitize":
    LINK = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", *LINK]
elif BUILD == "checked":
    FLAGS.append("-DPRECBENCH_PLAIN")
    DIRECTIVES |= {"boundscheck": True, "initializedcheck": True}
elif BUILD:
    raise SystemExit(f"PRECBENCH_BUILD is sanitize or checked, found {BUILD!r}")


PACKAGE = Path("precbench")
COMMON = PACKAGE / "core" / "kernels"  # what the kernels of several folders include
# What Cython needs for memory views, which would be most of the code of each kernel.
SHARED = "precbench._memoryviews"
INCLUDED = [
    str(path)
    for pattern in ("*.pxd", "*.pxi", "*.h")
    for path in PACKAGE.rglob(pattern)
]


def name_of(source):
    """Return the module of a kernel, such as precbench.solvers.push.kernel."""
    return ".".join(source.with_suffix("").parts)


def hash_of(source):
    """Hash what a kernel is compiled from; records say by it which code they are of."""
    parts = [Path(path).read_bytes() for path in (source, *sorted(INCLUDED))]
    options = json.dumps([FLAGS, DIRECTIVES]).encode()
    return hashlib.sha256(b"\0".join([*parts, options])).hexdigest()[:12]


NEEDED = (
    "precbench is built from source here, which needs a C compiler and the headers of"
    " Python (Debian: apt install gcc python3-dev; Fedora: dnf install gcc"
    " python3-devel; macOS: xcode-select --install). A wheel needs neither: pip install"
    " --only-binary precbench precbench"
)


class BuildKernels(build_ext):
    """Compile the kernels, or say what that needs."""

    def build_extensions(self):
        """Build as usual."""
        compiler = self.compiler.compiler[0]
        if shutil.which(compiler) is None:
            raise SystemExit(f"no compiler {compiler} was found: {NEEDED}")
        try:
            super().build_extensions()
        except CCompilerError as error:
            raise SystemExit(f"{error}\n{NEEDED}") from error


class BuildWithData(build_py):
    """Copy configs, data cards and reference into a wheel, for `shipped`."""

    def run(self):
        """Build as usual, then add the folders; an editable install reads them."""
        super().run()
        if not self.editable_mode:
            for folder in ("configs", "datasets", "results/reference"):
                target = Path(self.build_lib, "precbench", Path(folder).name)
                shutil.copytree(folder, target, dirs_exist_ok=True)


setup(
    cmdclass={"build_ext": BuildKernels, "build_py": BuildWithData},
    ext_modules=cythonize(
        [
            Extension(
                name_of(source),
                [str(source)],
                include_dirs=[str(COMMON), str(source.parent)],
                depends=[*INCLUDED, "setup.py"],
                define_macros=[("PRECBENCH_SOURCE", f'"{hash_of(source)}"')],
                extra_compile_args=FLAGS,
                extra_link_args=LINK,
            )
            for source in sorted(PACKAGE.rglob("*.pyx"))
        ]
        + [
            Extension(
                SHARED,
                [SHARED.replace(".", "/") + ".c"],
                extra_compile_args=FLAGS,
                extra_link_args=LINK,
            )
        ],
        include_path=[str(COMMON)],
        shared_utility_qualified_name=SHARED,
        compiler_directives=DIRECTIVES,
        build_dir=f"build/{BUILD}/c" if BUILD else None,
    ),
    options={
        "build_ext": {"parallel": 2},
        "build": {"build_base": f"build/{BUILD}" if BUILD else "build"},
    },
)
