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
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

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
CALIBRATION = DOCS / "own-data-calibration.png"
CALIBRATED = "customers"
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
    # Sorted so that a name comes after those that begin with it, as bench-machine.
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
    chosen = figures[figures["bench"].str.startswith(start)]
    if chosen["of"].nunique() == 1:  # one contestant against several
        side, heading = "to", "to that of"
    else:
        side, heading = "of", "time of"
    wide = chosen.pivot(index=side, columns="bench", values="shown")
    benches = chosen["bench"].unique()
    rows = [[name, *wide.loc[name, benches]] for name in chosen[side].unique()]
    header = [heading, *(bench.removeprefix(start) for bench in benches)]
    return laid_out(header, rows, numbers=len(benches))


def bench_missed() -> str:
    """List the figures of `make bench` that miss their targets, and why."""
    figures = read_bench()
    missed = figures[~figures["met"]].to_dict("records")
    n_targets = figures["target"].notna().sum()
    text = f"{len(missed)} of {n_targets} targets are missed:\n\n"
    for figure in missed:
        reason = reason_of(figure, WHY)
        text += f"- {figure['bench']}, {ratio_in_words(figure)}; {reason}.\n"
    return text


def read_bench() -> pd.DataFrame:
    """Read the figures of `make bench`.

    ``shown`` is the ratio as a text, with a † if it misses its target.
    """
    figures = pd.read_csv(BENCH)
    marks = np.where(figures["met"], "", " †")
    return figures.assign(shown=figures["ratio"].map("{:.2f}".format) + marks)


def verdicts(paper: str) -> str:
    """Count the verdicts of a paper by the place of its claims."""
    ledger = pd.read_csv(LEDGER).query("paper == @paper")
    places = ledger["id"].str.split("/").str[1]
    counts = Counter(zip(places, ledger["verdict"], strict=True))
    occurring = set(ledger["verdict"])
    given = [str(verdict) for verdict in Verdict if str(verdict) in occurring]
    rows = []
    for place in places.unique():
        numbers = [counts[place, verdict] or "" for verdict in given]
        rows.append([f"`{place}`", *numbers])
    return laid_out(["claims", *given], rows, numbers=len(given))


def shortfalls(paper: str) -> str:
    """List the claims of a paper that were decided, but not in its favour."""
    ledger = pd.read_csv(LEDGER, keep_default_na=False).query("paper == @paper")
    falls_short = ledger["verdict"].isin([Verdict.TREND_ONLY, Verdict.NOT_REPRODUCED])
    rows = []
    for row in ledger[falls_short].itertuples():
        name = row.id.removeprefix(f"{paper}/")
        rows.append([f"`{name}`", row.printed, row.measured, row.reason, row.verdict])
    return laid_out(["claim", "printed", "measured", "", "verdict"], rows)


def deviations(paper: str) -> str:
    """List the documented deviations of a paper, with the command that shows each."""
    rows = []
    for name, deviation in load_deviations().items():
        if deviation.paper != paper:
            continue
        rows.append(
            [
                f"`{name}` (a reading)" if deviation.reading else f"`{name}`",
                deviation.where,
                deviation.says,
                deviation.ours,
                f"`{deviation.evidence}`",
            ]
        )
    return laid_out(["id", "where", "the paper says", "here", "shown by"], rows)


def planted() -> str:
    """Count the errors that were planted, and those that have been found."""
    errors = pd.read_csv(REFERENCE / "planted.csv", keep_default_na=False)
    by_check = errors["check"] != ""
    by_test = errors["test"] != ""
    return (
        f"Of {len(errors)} errors planted so far `make check` finds {by_check.sum()};"
        f" together with `make test`, {(by_check | by_test).sum()}. Of the {AUDITED} of"
        " an audit, the first in the [list](../results/reference/planted.csv), `make"
        f" check` finds {by_check[:AUDITED].sum()}.\n"
    )


def promises() -> str:
    """List the promises, and the figures that were seen at both sizes."""
    seen = pd.read_csv(DOCS / "trust.csv", index_col=["promise", "size"])
    rows = []
    for name, promise in load(DOCS / "promises.yaml").data.items():
        sentence = f"{name}. {promise['says']}"
        for command in promise.get("also", ()):
            sentence += f" (also `{command}`)"
        quick = seen["figure"].get((name, "quick"), "")
        full = seen["figure"].get((name, "full"), "")
        rows.append([sentence, quick, "" if full == quick else full])
    dates = seen.groupby("size")["date"].max()
    header = ["promise"]
    for size in ("quick", "full"):
        header.append(f"{size} ({dates[size]})" if size in dates else size)
    return laid_out(header, rows)


def layered() -> list[list[str]]:
    """Return the modules of each layer of the first contract, the highest first."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contract = tools["importlinter"]["contracts"][0]
    layers = []
    for layer in contract["layers"]:
        names = [name.strip() for name in re.split("[|:]", layer)]
        layers.append([name.removeprefix("precbench.") for name in names])
    return layers


def modules() -> str:
    """List what each module holds, the highest layer first."""
    rows = [[f"`{name}`", summary(name)] for layer in layered() for name in layer]
    return laid_out(["module", "what it holds"], rows)


def summary(module: str) -> str:
    """Return the first clause of a module's docstring.

    That ends at a colon only if there are more than three words before.
    """
    place = PACKAGE / module.replace(".", "/")
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = docstring.split("\n\n")[0].replace("\n", " ")
    clause = re.split(r"\.\s|;", paragraph)[0]
    before_colon = clause.partition(": ")[0]
    if len(before_colon.split()) > 3:
        clause = before_colon
    return re.sub(r"`+", "`", clause).rstrip(".")


def tree() -> str:
    """Draw the packages and the names of their modules, the lowest layer first."""
    names = [name for layer in layered() for name in layer]
    packages = dict.fromkeys(name.partition(".")[0] for name in names)
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
    for file in sorted(folder.glob("*/__init__.py")):
        lines += _branch(file.parent, indent + "  ")
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
    lines = KAR2015.read_text().splitlines()
    of_run = [line for line in lines if line.startswith(f"{PICTURED},")]
    hashes = {
        PICTURE: _hash("\n".join(of_run).encode()),
        PEERS: _hash(peers.PEERS.read_bytes()),
    }
    for name in page.PICTURES:
        hashes[_picture_of_survey(name)] = _hash(ranking.REFERENCE.read_bytes())
    for picture in _pictures_of_lists():
        hashes[picture] = _hash(repr(list_steps()).encode())
    return hashes


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _picture_of_survey(name: str) -> Path:
    return DOCS / f"which-method-{name}.png"


def _pictures_of_lists() -> dict[Path, str]:
    """Return each picture of one's own lists, with the pattern of its source."""
    sources = {DOCS / f"own-data-{name}.png": (name, "length") for name in LISTS}
    sources[CALIBRATION] = (CALIBRATED, "calibration")
    return {
        picture: f"results/compare-{name}-*-k-*/figures/{figure}.png"
        for picture, (name, figure) in sources.items()
    }


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    code: str

    @property
    def file(self) -> str | None:
        """The file that the block shows, named in its first line."""
        comment = re.match(r"# ([\w./-]+\.\w+)\n", self.code)
        return comment[1] if comment else None


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, without those that say they are not run."""
    fenced = r"(<!-- not run: .+? -->\s*)?^```(\w+)\n(.*?)^```$"
    matches = re.findall(fenced, page.read_text(), re.DOTALL | re.MULTILINE)
    return [Block(language, code) for reason, language, code in matches if not reason]


def commands(code: str) -> list[list[str]]:
    """Return the command lines of a block as lists of words."""
    lines = code.replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words for words in split if words]


def list_steps() -> list[Block]:
    """Return the programs of the page on one's own lists, and what it compares.

    Each command that compares is a block of its own.
    """
    steps = []
    for block in blocks(OWN_DATA):
        if block.language == "sh":
            for words in commands(block.code):
                if words[:2] == ["precbench", "compare"]:
                    steps.append(Block("sh", f"{shlex.join(words)}\n"))
        elif block.language == "python" and "import precbench" not in block.code:
            steps.append(block)
    return steps


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
    sentences = reference.differences(measured, reference.read(reference.VALUES))
    if sentences:
        sys.exit("\n".join(sentences))
    take(results / PICTURED / "figures" / PICTURE.name, PICTURE)


def draw() -> None:
    """Draw the pictures, but for that of a run, whose numbers or steps have changed."""
    stale = [path for path, current in pictures().items() if noted(path) != current]
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name in page.PICTURES:
            picture = _picture_of_survey(name)
            if picture in stale:
                take(page.draw(name, folder), picture)
        if PEERS in stale:
            drawn = folder / PEERS.name
            peers.draw(pd.read_csv(peers.PEERS), drawn)
            take(drawn, PEERS)
        of_lists = [picture for picture in stale if picture in _pictures_of_lists()]
        if of_lists:
            _draw_lists(folder, of_lists)


def _draw_lists(folder: Path, pictures_to_take: Sequence[Path]) -> None:
    """Run the steps of the page on one's own lists in a folder; take pictures."""
    variables: dict[str, Any] = {}  # of the programs, one after the other
    with contextlib.chdir(folder):
        for step in list_steps():
            if step.language == "python":
                exec(step.code, variables)
            else:
                command = [sys.executable, "-m", *shlex.split(step.code)]
                subprocess.run(command, check=True)
    for picture in pictures_to_take:
        [drawn] = folder.glob(_pictures_of_lists()[picture])
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
