"""Make the tables, drawings and pictures of README and docs from what they show.

``make docs`` runs it. Between ``<!-- name -->`` and ``<!-- end -->`` of a page stands
what this script makes: tables of the committed reference, of the ledger, its open
claims and its power, of the documented deviations and of the promises, what the survey
says, and the modules of the package. The pictures of the survey are made from its
committed means, that of the peers from their figures, those of one's own lists from
what the page on them runs. A test fails when a page or picture drifts from its sources.

``make docs RESULTS=results`` also takes the picture of the README from results/ijcnn1,
if the run there agrees with the committed reference.
"""

import argparse
import ast
import contextlib
import hashlib
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from precbench.claims import load_deviations
from precbench.claims.ledger import read_ledger
from precbench.claims.verdicts import Verdict
from precbench.core.yaml.document import load
from precbench.survey import ranking
from scripts import growth, listings, open_claims, peers, power, printed, reference
from scripts.bench import BENCH, WHY, ratio_in_words, reason_of
from scripts.reference import KAR2015, LEDGER, REFERENCE, ROOT, SOLVERS
from scripts.survey import advice, coverage, page
from scripts.survey.tables import (
    laid_out,
    ledger_table,
    means_table,
    optima_table,
    unit_norm_table,
)

README = ROOT / "README.md"
PACKAGE = ROOT / "precbench"
DOCS = ROOT / "docs"
PICTURE = DOCS / "accuracy-time-ijcnn1.png"
PICTURED = "ijcnn1"
PEERS = DOCS / "peers.png"
OWN_DATA = DOCS / "own-data.md"
LISTS = ("payments", "customers", "visits")
AUDITED = 14  # the first planted errors are those of an audit
OPTIMA = REFERENCE / "optima.csv"
_WIDTH_OF_TREE = 100
END = "<!-- end -->"


def pages() -> dict[Path, str]:
    """Return every page with what this script makes in it."""
    texts = {path: path.read_text() for path in [README, *sorted(DOCS.rglob("*.md"))]}
    return {path: filled_in(text) for path, text in texts.items()}


def filled_in(text: str) -> str:
    """Return a page with its marked blocks made anew."""
    # the longest first: bench-machine before bench
    names = "|".join(sorted(MAKERS, reverse=True))
    block = rf"(?P<start><!-- (?P<name>{names})\b(?P<arguments>.*?) -->)\n.*?{END}"
    return re.sub(block, _made_anew, text, flags=re.DOTALL)


def _made_anew(block: re.Match[str]) -> str:
    make = MAKERS[block["name"]]
    return f"{block['start']}\n{make(*block['arguments'].split())}{END}"


def _reference() -> str:
    return means_table(pd.read_csv(KAR2015))


def _unit_norm() -> str:
    return unit_norm_table(pd.read_csv(KAR2015), pd.read_csv(SOLVERS))


def _all_solvers() -> str:
    means = pd.read_csv(SOLVERS)
    return means_table(means[means["experiment"] == "all-solvers"])


def _ledger() -> str:
    return ledger_table(read_ledger(LEDGER))


def _optima(*problems: str) -> str:
    return optima_table(pd.read_csv(OPTIMA), problems)


def _coverage() -> str:
    return coverage.coverage_table(pd.read_csv(coverage.REFERENCE))


def _advice() -> str:
    return advice.hits_table(pd.read_csv(advice.REFERENCE))


def _forecasts() -> str:
    return advice.forecasts_table(pd.read_csv(advice.REFERENCE))


def _growth() -> str:
    return growth.growth_table(pd.read_csv(growth.GROWTH))


def _peers() -> str:
    return peers.peers_table(pd.read_csv(peers.PEERS))


def _peers_settings() -> str:
    return peers.settings_table(pd.read_csv(peers.PEERS))


def _peers_missed() -> str:
    return peers.missed_list(pd.read_csv(peers.PEERS))


def _survey(part: str, *arguments: str) -> str:
    """Make a part of the page on the survey."""
    return page.PARTS[part](page.committed(), *arguments)


def _rare(part: str, *arguments: str) -> str:
    """Make a part of the page on the survey from the lists with few positives."""
    return page.PARTS[part](page.rare_panel(), *arguments)


def power_table() -> str:
    """Lay out which wrong implementations the printed tables of rudin2009 detect."""
    tables = [f"Table {table[-1]}" for table in power.TABLES]
    rows = power.power_rows(pd.read_csv(power.REFERENCE))
    return laid_out(["error in", "wrong", *tables], rows, numbers=len(tables))


def bench(*titles: str) -> str:
    """Lay out the figures of `make bench` whose titles begin so."""
    figures = read_bench()
    chosen = figures[figures["bench"].str.startswith(titles)]
    rows = chosen[["bench", "of", "to", "shown"]].to_numpy()
    return laid_out(["rows", "time of", "to that of", "ratio"], rows, numbers=1)


def _bench_machine() -> str:
    return f"{read_bench()['machine'][0]}\n"


def shapes(*title: str) -> str:
    """Lay out the figures of a bench, with a column for each shape of rows."""
    start = f"{' '.join(title)} "
    figures = read_bench()
    figures = figures[figures["bench"].str.startswith(start)]
    side = "to" if figures["of"].nunique() == 1 else "of"
    wide = figures.pivot(index=side, columns="bench", values="shown")
    columns = figures["bench"].unique()
    rows = [[name, *wide.loc[name, columns]] for name in figures[side].unique()]
    heading = "time of" if side == "of" else "to that of"
    header = [heading, *(column.removeprefix(start) for column in columns)]
    return laid_out(header, rows, numbers=len(columns))


def bench_missed() -> str:
    """List the figures of `make bench` that miss their targets, and why."""
    figures = read_bench()
    missed = figures[~figures["met"]].to_dict("records")
    held = figures["target"].notna().sum()
    lines = [
        f"- {row['bench']}, {ratio_in_words(row)}; {reason_of(row, WHY)}.\n"
        for row in missed
    ]
    return f"{len(missed)} of {held} targets are missed:\n\n" + "".join(lines)


def read_bench() -> pd.DataFrame:
    """Read the figures of `make bench`.

    ``shown`` marks those that miss their targets.
    """
    figures = pd.read_csv(BENCH)
    shown = figures["ratio"].map("{:.2f}".format) + np.where(figures["met"], "", " †")
    return figures.assign(shown=shown)


def verdicts(paper: str) -> str:
    """Count the verdicts of a paper by the place of its claims."""
    ledger = pd.read_csv(LEDGER).query("paper == @paper")
    places = ledger["id"].str.split("/").str[1]
    counts = Counter(zip(places, ledger["verdict"], strict=True))
    given = [
        verdict for verdict in map(str, Verdict) if verdict in set(ledger["verdict"])
    ]
    rows = [
        [f"`{place}`", *(counts[place, v] or "" for v in given)]
        for place in places.unique()
    ]
    return laid_out(["claims", *given], rows, numbers=len(given))


def shortfalls(paper: str) -> str:
    """List the claims of a paper that were decided, but not in its favour."""
    ledger = pd.read_csv(LEDGER, keep_default_na=False).query("paper == @paper")
    short = ledger[ledger["verdict"].isin([Verdict.TREND_ONLY, Verdict.NOT_REPRODUCED])]
    names = short["id"].str.removeprefix(f"{paper}/").map("`{}`".format)
    columns = [
        names,
        short["printed"],
        short["measured"],
        short["reason"],
        short["verdict"],
    ]
    return laid_out(
        ["claim", "printed", "measured", "", "verdict"], zip(*columns, strict=True)
    )


def deviations(paper: str) -> str:
    """List the documented deviations of a paper, with the command that shows each."""
    rows = [
        [
            f"`{name}`" + " (a reading)" * about.reading,
            about.where,
            about.says,
            about.ours,
            f"`{about.evidence}`",
        ]
        for name, about in load_deviations().items()
        if about.paper == paper
    ]
    return laid_out(["id", "where", "the paper says", "here", "shown by"], rows)


def planted() -> str:
    """Count the errors that were planted, and those that have been found."""
    errors = pd.read_csv(REFERENCE / "planted.csv", keep_default_na=False)
    checked = errors["check"] != ""
    tested = errors["test"] != ""
    return (
        f"Of {len(errors)} errors planted so far `make check` finds {checked.sum()};"
        f" together with `make test`, {(checked | tested).sum()}. Of the {AUDITED} of"
        " an audit, the first in the [list](../results/reference/planted.csv), `make"
        f" check` finds {checked[:AUDITED].sum()}.\n"
    )


def promises() -> str:
    """List the promises, and the figures that were seen at both sizes."""
    seen = pd.read_csv(DOCS / "trust.csv", index_col=["promise", "size"])
    rows = []
    for name, promise in load(DOCS / "promises.yaml").data.items():
        also = "".join(f" (also `{command}`)" for command in promise.get("also", ()))
        quick = seen["figure"].get((name, "quick"), "")
        full = seen["figure"].get((name, "full"), "")
        sentence = f"{name}. {promise['says']}{also}"
        rows.append([sentence, quick, "" if full == quick else full])
    dates = seen.groupby("size")["date"].max()
    header = ["promise"]
    for size in ("quick", "full"):
        header.append(f"{size} ({dates[size]})" if size in dates else size)
    return laid_out(header, rows)


def layered() -> list[list[str]]:
    """Return the modules of each layer of the first contract, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]
    layers = contracts["contracts"][0]["layers"]
    return [
        [name.strip().removeprefix("precbench.") for name in re.split("[|:]", layer)]
        for layer in layers
    ]


def modules() -> str:
    """List what each module holds, the highest layer first."""
    rows = [[f"`{name}`", summary(name)] for layer in layered() for name in layer]
    return laid_out(["module", "what it holds"], rows)


def summary(module: str) -> str:
    """Return the first clause of a module's docstring."""
    place = PACKAGE / module.replace(".", "/")
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = re.split(r"\.\s|;", text.split("\n\n")[0].replace("\n", " "))[0]
    start = first.partition(": ")[0]
    return re.sub(r"`+", "`", first if len(start.split()) <= 3 else start).rstrip(".")


def tree() -> str:
    """Draw the packages and the names of their modules, the lowest layer first."""
    packages = list(
        dict.fromkeys(name.partition(".")[0] for layer in layered() for name in layer)
    )
    lines = ["precbench/", "  __init__.py, __main__.py"]
    for package in reversed(packages):
        lines += _branch(PACKAGE / package, "  ")
    return "```text\n" + "\n".join(lines) + "\n```\n"


def _branch(folder: Path, indent: str) -> list[str]:
    """Draw a package with its modules in one paragraph, then its packages."""
    stems = sorted({path.stem for path in folder.glob("*.py*")} - {"__init__"})
    paragraph = textwrap.fill(
        f"{folder.name}/".ljust(12) + " ".join(stems),
        width=_WIDTH_OF_TREE,
        initial_indent=indent,
        subsequent_indent=indent + " " * 12,
    )
    lines = paragraph.split("\n")
    for inner in sorted(
        path for path in folder.iterdir() if (path / "__init__.py").exists()
    ):
        lines += _branch(inner, indent + "  ")
    return [line.rstrip() for line in lines]


MAKERS: dict[str, Callable[..., str]] = {
    "reference": _reference,
    "unit-norm": _unit_norm,
    "all-solvers": _all_solvers,
    "ledger": _ledger,
    "verdicts": verdicts,
    "shortfalls": shortfalls,
    "cells": printed.cells,
    "commands": listings.commands_table,
    "names": listings.names_table,
    "numbers": printed.numbers,
    "deviations": deviations,
    "optima": _optima,
    "coverage": _coverage,
    "advice": _advice,
    "forecasts": _forecasts,
    "bench": bench,
    "bench-machine": _bench_machine,
    "bench-missed": bench_missed,
    "bench-shapes": shapes,
    "growth": _growth,
    "peers": _peers,
    "peers-settings": _peers_settings,
    "peers-missed": _peers_missed,
    "planted": planted,
    "power": power_table,
    "promises": promises,
    "survey": _survey,
    "rare": _rare,
    "modules": modules,
    "tree": tree,
    "is-it-true": open_claims.is_it_true,
    "open-claims": open_claims.open_claims,
}


def pictures() -> dict[Path, str]:
    """Return each picture with the hash of the numbers that it goes with."""
    rows = [
        line
        for line in KAR2015.read_text().splitlines()
        if line.startswith(f"{PICTURED},")
    ]
    ours = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    surveyed = hashlib.sha256(ranking.REFERENCE.read_bytes()).hexdigest()
    drawn = {DOCS / f"which-method-{name}.png": surveyed for name in page.PICTURES}
    steps = hashlib.sha256(repr(list_steps()).encode()).hexdigest()
    timed = hashlib.sha256(peers.PEERS.read_bytes()).hexdigest()
    lists = {DOCS / f"own-data-{name}.png": steps for name in LISTS}
    return {PICTURE: ours, PEERS: timed, **drawn, **lists}


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    code: str

    @property
    def file(self) -> str | None:
        """The file that the block shows, named in its first line."""
        found = re.match(r"# ([\w./-]+\.\w+)\n", self.code)
        return found and found[1]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, without those that say they are not run."""
    fenced = r"(<!-- not run: .+? -->\s*)?^```(\w+)\n(.*?)^```$"
    found = re.findall(fenced, page.read_text(), re.DOTALL | re.MULTILINE)
    return [Block(language, code) for reason, language, code in found if not reason]


def commands(code: str) -> list[list[str]]:
    """Return the command lines of a block as lists of words."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def list_steps() -> list[Block]:
    """Return the programs of the page on one's own lists, and what it compares."""
    found = []
    for block in blocks(OWN_DATA):
        lines = [f"{shlex.join(words)}\n" for words in commands(block.code)]
        if block.language == "sh":
            found += [
                Block("sh", line)
                for line in lines
                if line.startswith("precbench compare ")
            ]
        elif block.language == "python" and "import precbench" not in block.code:
            found.append(block)
    return found


def noted(picture: Path) -> str:
    """Return the hash that was current when a picture was drawn."""
    if not picture.exists():
        return ""
    with Image.open(picture) as image:
        return str(image.info.get("reference"))


def take(source: Path, picture: Path) -> None:
    """Copy a picture, marked with the hash of the numbers that it goes with."""
    info = PngInfo()
    info.add_text("reference", pictures()[picture])
    with Image.open(source) as image:
        image.save(picture, pnginfo=info, optimize=True)


def take_picture(results: Path) -> None:
    """Copy the picture of a run, if the run agrees with the reference."""
    measured = reference.values(results, [PICTURED])
    if found := reference.differences(measured, reference.read(reference.VALUES)):
        sys.exit("\n".join(found))
    take(results / PICTURED / "figures" / PICTURE.name, PICTURE)


def draw() -> None:
    """Draw the pictures, but for that of a run, whose numbers or steps have changed."""
    stale = [path for path, current in pictures().items() if noted(path) != current]
    with TemporaryDirectory() as folder:
        for name in page.PICTURES:
            if (picture := DOCS / f"which-method-{name}.png") in stale:
                take(page.draw(name, Path(folder)), picture)
        if PEERS in stale:
            peers.draw(pd.read_csv(peers.PEERS), Path(folder, PEERS.name))
            take(Path(folder, PEERS.name), PEERS)
        lists = {DOCS / f"own-data-{name}.png": name for name in LISTS}
        if not lists.keys() & {*stale}:
            return
        program = {}
        with contextlib.chdir(folder):
            for language, code in list_steps():
                if language == "python":
                    exec(code, program)
                else:
                    subprocess.run(
                        [sys.executable, "-m", *shlex.split(code)], check=True
                    )
        for picture, name in lists.items():
            [drawn] = Path(folder).glob(
                f"results/compare-{name}-*-k-*/figures/length.png"
            )
            take(drawn, picture)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "results", type=Path, nargs="?", help="take the picture from this folder"
    )
    results = parser.parse_args().results
    if results is not None:
        take_picture(results)
    draw()
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
