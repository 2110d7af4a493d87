"""How Sphinx builds the site: `make site`."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import typer
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from typer.main import get_command

from precbench import __version__
from precbench.cli import app as commands
from precbench.survey.ranking import MEASURES
from precbench.survey.ranking import kind_of as kind_of_solver
from precbench.survey.tasks import TEST_SHARE

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from scripts import method_pages, printed
from scripts.survey.page import committed

REPOSITORY = "https://github.com/precbench/precbench"

project = "precbench"
author = "The precbench developers"
html_show_copyright = False
release = version = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# sphinx-gallery makes pages of the first two, in auto; the last are copied as they are.
exclude_patterns = ["tutorials", "gallery", "paper", "auto/files"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # those that GitHub gives
highlight_language = "none"

autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
nitpick_ignore_regex = [("py:class", r"sklearn\..*")]  # defaults of parameters

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "gallery"],
    "gallery_dirs": ["auto/tutorials", "auto/gallery"],
    "filename_pattern": r"/tutorials/|/plot_",
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r"$^",
    "write_computation_times": False,  # their page takes scripts from other hosts
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": False,
    "remove_config_comments": True,
}
html_theme = "pydata_sphinx_theme"
html_title = "precbench"
html_static_path = ["_static", "auto/static"]
html_css_files = ["site.css"]
html_extra_path = ["auto/files"]
html_show_sourcelink = False
html_theme_options = {
    "github_url": REPOSITORY,
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": [],
    "footer_end": [],
}


def write_survey():
    """Write the values from which a browser computes the survey's table."""
    survey = committed()
    measures = {
        measure.title: (
            survey.values(metric, survey.real)[survey.solvers]
            .round(8)
            .T.to_dict("list")
        )
        for metric, measure in MEASURES.items()
    }
    tasks = [
        {
            "task": task.Index,
            "share": round(task.positives / task.rows, 5),
            "positives": (1 - TEST_SHARE) * task.positives,
        }
        for task in survey.tasks.itertuples()
    ]
    kinds = [kind_of_solver(solver) for solver in survey.solvers]
    values = {
        "measures": measures,
        "solvers": survey.solvers,
        "kinds": kinds,
        "tasks": tasks,
    }
    text = f"window.SURVEY = {json.dumps(values)};\n".replace("NaN", "null")
    (DOCS / "auto" / "static").mkdir(parents=True, exist_ok=True)
    (DOCS / "auto" / "static" / "survey-values.js").write_text(text)


write_survey()
method_pages.write_pages(DOCS / "auto" / "methods")


def outside(app, name, source):
    """Point links to files outside docs, which have no page, to the repository."""
    page = DOCS / name

    def link(found):
        path, anchor = found[1], found[2] or ""
        target = (page.parent / path).resolve()
        if not target.exists() or target.is_relative_to(DOCS):
            return found[0]  # which Sphinx checks
        kind = "tree" if target.is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{target.relative_to(DOCS.parent)}{anchor})"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)", link, source[0])


def made(app, name, source):
    """Fill the pages that are made of the program."""
    if name == "commands":
        source[0] += "".join(described(context) for context in tree())
    if name == "config-schema":
        text = subprocess.check_output(
            [sys.executable, "-m", "precbench", "schema"], text=True
        )
        (DOCS / "auto").mkdir(exist_ok=True)
        (DOCS / "auto" / "precbench.schema.json").write_text(text)
        schema = json.loads(text)
        parts = {
            "Experiment": schema["else"],
            "Study": schema["then"],
            **schema["$defs"],
        }
        source[0] += "".join(keys(title, part) for title, part in parts.items())
    if name == "reports":
        source[0] += reports()
    makers = {
        "picture": lambda paper: printed.picture(paper, DOCS / "auto" / "papers"),
        "every-claim": printed.every_claim,
    }
    source[0] = re.sub(
        r"<!-- (picture|every-claim) (\w+) -->\n",
        lambda found: makers[found[1]](found[2]),
        source[0],
    )


def always(app, env, added, changed, removed):
    """Read again the pages that are made of more than their source."""
    papers = {f"papers/{path.stem}" for path in (DOCS / "papers").glob("*.md")}
    return {"commands", "config-schema", "reports"} | papers


def take_reports():
    """Copy the reports of the results that ``make site`` names, and their index."""
    target = DOCS / "auto" / "files" / "reports"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if results := os.environ.get("RESULTS"):
        subprocess.run(
            [sys.executable, "-m", "precbench", "report", results], check=True
        )
        for page in [Path(results, "index.html"), *Path(results).glob("*/report.html")]:
            copy = target / page.relative_to(results)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(page, copy)


take_reports()


def reports():
    """Return the table of the index of the reports, with links from this page."""
    index = DOCS / "auto" / "files" / "reports" / "index.html"
    if not index.exists():
        return "\nThis site was built without results.\n"
    table = re.search(r"<table.*?</table>", index.read_text(), re.DOTALL)[0]
    table = table.replace('href="', 'href="reports/').replace("sortable index", "table")
    scrolled = f'<div class="pst-scrollable-table-container" tabindex="0">{table}</div>'
    return f"\n```{{raw}} html\n{scrolled}\n```\n"


def tree(command=None, name="precbench", parent=None):
    """Yield the context of each command, those of a group after it."""
    command = command or get_command(commands)
    context = typer.Context(
        command,
        parent,
        name,
        terminal_width=88,
        max_content_width=88,
        **command.context_settings,
    )
    yield context
    for below in getattr(command, "list_commands", lambda context: [])(context):
        yield from tree(command.resolve_command(context, [below])[1], below, context)


def described(context):
    """Return the help of a command as a section."""
    return f"\n## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


def keys(title, part):
    """Return the keys of a part of a config as a section."""
    about = part.get("description", "").split("\n")[0]
    text = f"\n## {title}\n\n{about}\n\n"
    if "properties" not in part:
        return text
    rows = ["| key | value | default |", "| --- | --- | --- |"]
    for key, value in part["properties"].items():
        default = json.dumps(value["default"]) if "default" in value else ""
        required = (
            "required"
            if key in part.get("required", ())
            else default and f"`{default}`"
        )
        rows.append(f"| `{key}` | {kind_of(value)} | {required} |")
    return text + "\n".join(rows) + "\n"


def kind_of(value):
    """Say in a few words what a schema allows."""
    if options := value.get("anyOf") or value.get("oneOf"):
        return " or ".join(dict.fromkeys(map(kind_of, options)))
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if value.get("type") == "array" and "items" in value:
        return f"list of: {kind_of(value['items'])}"
    types = value.get("type", "anything")
    types = [types] if isinstance(types, str) else types
    return " or ".join("nothing" if one == "null" else one for one in types)


def visit_math(self, node):
    """Write a formula as MathML, which needs no script."""
    block, text = isinstance(node, nodes.math_block), node.astext()
    if "&" in text:
        lines = text.replace("\n\n", r" \\ ")
        text = rf"\begin{{aligned}}{lines}\end{{aligned}}"
    self.body.append(tex2mathml(text, as_block=block))
    raise nodes.SkipNode


def setup(app):
    """Add what the extensions have not."""
    app.connect("env-get-outdated", always)
    app.connect("source-read", outside)
    app.connect("source-read", made)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.config.html_math_renderer = "mathml"
