"""The report: our figures beside the paper's, as one self-contained HTML page, Markdown, CSV tables and figures.

Every entry is kept as one JSON file in the report's folder; the page is made of all of them. So an entry
that is run again, or with a larger budget, replaces its own section and leaves the others as they are.
"""

import base64
import csv
import html
import io
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contingencies.errors import IntegrityError
from contingencies.files import write_atomically
from zoo.paper import NAMES
from zoo.paper.entry import Benchmark, Setting
from zoo.paper.tables import Cell, Presentation, Quantity, Row, Table

FIGURE_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class Circumstances:
    """Under which an entry was run."""

    budget: str
    seeds: int
    commit: str
    machine: str
    date: str

    @property
    def sentence(self) -> str:
        """For people."""
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return f"budget {self.budget}, {seeds}, {self.date}, commit {self.commit}, {self.machine}"


@dataclass(frozen=True)
class ShownFigure:
    """A figure in the report's folder."""

    file: str
    caption: str


@dataclass(frozen=True)
class Section:
    """One entry of the report."""

    name: str
    title: str
    source: str
    circumstances: Circumstances
    tables: tuple[Table, ...]
    figures: tuple[ShownFigure, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Section":
        """What `asdict` made."""
        tables = tuple(
            Table(
                t["name"], t["title"], t["source"], tuple(Quantity(**q) for q in t["quantities"]),
                tuple(Row(r["label"], tuple(Cell(**c) for c in r["cells"]), r["why"]) for r in t["rows"]),
            )
            for t in content["tables"]
        )  # fmt: skip
        return Section(
            content["name"], content["title"], content["source"], Circumstances(**content["circumstances"]), tables,
            tuple(ShownFigure(**f) for f in content["figures"]), tuple(content["notes"]), tuple(content["failures"]),
        )  # fmt: skip


def circumstances(setting: Setting) -> Circumstances:
    """Now and here."""
    return Circumstances(
        setting.budget.name, len(setting.seeds), commit(), machine(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    )


def commit() -> str:
    """The commit of the source tree, marked when files differ from it; of an installed package its version."""
    root = Path(__file__).parent.parent
    try:
        said = [
            subprocess.run(  # noqa: S603 - fixed words
                ["git", *words],  # noqa: S607 - whichever git the user has
                cwd=root, capture_output=True, text=True, check=True, timeout=20,
            ).stdout
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        ]  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        from zoo.surrogates.checkpoints import code_version

        return f"version {code_version()}"
    return said[0].strip() + (" with local changes" if said[1].strip() else "")


def machine() -> str:
    """The processor, how busy it was in the last five minutes, and what runs on it."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    from importlib.metadata import version

    load = (
        f" (load {os.getloadavg()[1]:.1f})" if hasattr(os, "getloadavg") else ""
    )  # above the cores: shared with others
    return f"{model}, {os.cpu_count()} cores{load}, Python {platform.python_version()}, torch {version('torch')}"


# --- writing ----------------------------------------------------------------------------------


def write_section(
    folder: Path, benchmark: Benchmark, shown: Presentation, around: Circumstances, failures: Sequence[str] = ()
) -> Section:
    """Write an entry's tables, figures and JSON, and the page of all entries there are."""
    from zoo.plots import save_figure

    (folder / "figures").mkdir(parents=True, exist_ok=True)
    figures = []
    for drawing in shown.drawings:
        file = f"figures/{benchmark.name}-{drawing.name}{drawing.suffix}"
        save_figure(drawing.figure, folder / file)
        figures.append(ShownFigure(file, drawing.caption))
    section = Section(
        benchmark.name, benchmark.title, benchmark.source, around, shown.tables, tuple(figures), shown.notes,
        tuple(failures),
    )  # fmt: skip
    for table in section.tables:
        write_atomically(folder / "tables" / f"{section.name}-{table.name}.csv", table_csv(table).encode())
    content = json.dumps(asdict(section), indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(folder / "entries" / f"{section.name}.json", content.encode())
    write_pages(folder)
    return section


def write_pages(folder: Path) -> None:
    """Write index.html and README.md from the entries in the folder."""
    sections = read_sections(folder)
    write_atomically(folder / "index.html", html_page(sections, folder).encode())
    write_atomically(folder / "README.md", markdown(sections).encode())


def read_sections(folder: Path) -> list[Section]:
    """The entries in the folder, in the order of the benchmarks."""
    sections = []
    for name in NAMES:
        path = folder / "entries" / f"{name}.json"
        if path.is_file():
            try:
                sections.append(Section.from_dict(json.loads(path.read_text(encoding="utf-8"))))
            except (ValueError, KeyError, TypeError):
                raise IntegrityError(f"{str(path)!r} is damaged; delete it and run its benchmark again.") from None
    return sections


# --- formats ----------------------------------------------------------------------------------


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits, or a dash."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value:,.0f}"
    if abs(value) < 1e-3 or abs(value) >= 1e7:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.{digits}g}"


def ours(cell: Cell, digits: int = 4) -> str:
    """Mean and, over several seeds, standard deviation."""
    return number(cell.ours, digits) + (f" ± {number(cell.ours_std)}" if cell.ours_std is not None else "")


def paper(cell: Cell, digits: int = 4) -> str:
    """The published number."""
    return number(cell.paper, digits) + (f" ± {number(cell.paper_std)}" if cell.paper_std is not None else "")


def heading(quantity: Quantity) -> str:
    """Name and unit of a column."""
    return f"{quantity.name} ({quantity.unit})" if quantity.unit else quantity.name


def table_csv(table: Table) -> str:
    """One line per row and quantity."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "quantity", "unit", "ours", "ours_std", "paper", "paper_std", "source", "why"])
    for row in table.rows:
        for quantity, c in zip(table.quantities, row.cells, strict=True):
            writer.writerow(
                [
                    row.label,
                    quantity.name,
                    quantity.unit,
                    c.ours,
                    c.ours_std,
                    c.paper,
                    c.paper_std,
                    table.source,
                    row.why,
                ]
            )
    return text.getvalue()


INTRODUCTION = (
    "Every table and figure of the paper, run on this machine, beside what it published. Each entry names its budget, "
    "seeds, commit and machine. In a cell, ours stands first and the paper's below it; a dash means that there is no "
    "such number, and the row says why. Budgets are minutes of CPU where the paper had hours of GPU, so a short budget "
    "shows what it buys, not what a method can reach."
)


def markdown(sections: Sequence[Section]) -> str:
    """The report for a code host."""
    lines = ["# Benchmarks", "", INTRODUCTION, "", "[One page with all figures](index.html).", ""]
    lines += _contents([(s, f"[{s.name}](#{s.name})") for s in sections])
    for section in sections:
        lines += ["", f"## {section.name}", "", f"{section.title} ({section.source}).", ""]
        lines += [f"*{section.circumstances.sentence}.*", ""]
        for table in section.tables:
            lines += [f"**{table.title}** ([CSV](tables/{section.name}-{table.name}.csv); paper: {table.source})", ""]
            header = ["", *map(heading, table.quantities), "why they may differ"]
            lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
            for row in table.rows:
                pairs = zip(row.cells, table.quantities, strict=True)
                cells = [
                    ours(c, q.digits) + ("" if c.paper is None else f"<br>paper {paper(c, q.digits)}") for c, q in pairs
                ]
                lines.append("| " + " | ".join(_escaped(text) for text in (row.label, *cells, row.why)) + " |")
            lines.append("")
        lines += [f"{note}\n" for note in section.notes]
        lines += [f"Failed: {failure}\n" for failure in section.failures]
        lines += [f"![{figure.caption}]({figure.file})\n\n{figure.caption}\n" for figure in section.figures]
    return "\n".join(lines).rstrip() + "\n"


def _contents(sections: Sequence[tuple[Section, str]]) -> list[str]:
    lines = ["| entry | what it repeats | budget | seeds |", "|---|---|---|---|"]
    return lines + [
        f"| {link} | {s.title} ({s.source}) | {s.circumstances.budget} | {s.circumstances.seeds} |"
        for s, link in sections
    ]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem;color:#1b1f24}
h2{margin-top:3rem;border-top:1px solid #d0d7de;padding-top:1rem}
.around,.why,small{color:#57606a;font-size:13px} table{border-collapse:collapse;margin:.6rem 0 1.4rem;font-size:13.5px}
th,td{border:1px solid #d0d7de;padding:.3rem .6rem;text-align:right;vertical-align:top} th{background:#f6f8fa}
th:first-child,td:first-child{text-align:left} td.why{text-align:left;min-width:15rem}
.paper{color:#8250df;display:block;font-size:12.5px} figure{margin:1rem 0} figure img{max-width:100%}
.scroll{overflow-x:auto} .failed{color:#b42318}
"""


def html_page(sections: Sequence[Section], folder: Path) -> str:
    """One page that needs no other file: figures are part of it."""
    e = html.escape
    parts = [
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>CCT zoo: benchmarks</title><style>{STYLE}</style></head><body>",
        "<h1>CCT zoo: benchmarks</h1>", f"<p>{e(INTRODUCTION)}</p>",
        '<div class="scroll"><table><tr><th>entry</th><th>what it repeats</th><th>budget</th><th>seeds</th></tr>',
    ]  # fmt: skip
    for s in sections:
        parts.append(
            f'<tr><td><a href="#{e(s.name)}">{e(s.name)}</a></td><td class="why">{e(s.title)} ({e(s.source)})</td>'
            f"<td>{e(s.circumstances.budget)}</td><td>{s.circumstances.seeds}</td></tr>"
        )
    parts.append("</table></div>")
    for s in sections:
        parts += [f'<h2 id="{e(s.name)}">{e(s.name)}</h2>', f"<p>{e(s.title)} ({e(s.source)}).</p>"]
        parts.append(f'<p class="around">{e(s.circumstances.sentence)}</p>')
        parts += [_html_table(table) for table in s.tables]
        parts += [f"<p>{e(note)}</p>" for note in s.notes]
        parts += [f'<p class="failed">Failed: {e(failure)}</p>' for failure in s.failures]
        for figure in s.figures:
            kind = FIGURE_TYPES[Path(figure.file).suffix]
            data = base64.b64encode((folder / figure.file).read_bytes()).decode()
            parts.append(
                f'<figure><img alt="{e(figure.caption)}" src="data:{kind};base64,{data}">'
                f"<figcaption><small>{e(figure.caption)}</small></figcaption></figure>"
            )
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _html_table(table: Table) -> str:
    e = html.escape
    head = "".join(f"<th>{e(heading(q))}</th>" for q in table.quantities)
    rows = []
    for row in table.rows:
        cells = ""
        for c, q in zip(row.cells, table.quantities, strict=True):
            published = "" if c.paper is None else f'<span class="paper">paper {e(paper(c, q.digits))}</span>'
            cells += f"<td>{e(ours(c, q.digits))}{published}</td>"
        rows.append(f'<tr><td>{e(row.label)}</td>{cells}<td class="why">{e(row.why)}</td></tr>')
    return (
        f"<h3>{e(table.title)}</h3><small>paper: {e(table.source)}</small>"
        f'<div class="scroll"><table><tr><th></th>{head}<th>why they may differ</th></tr>{"".join(rows)}</table></div>'
    )
