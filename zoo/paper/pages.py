"""The report as pages: Markdown for a code host, and one self-contained HTML page, our figures beside the paper's."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from contingencies.errors import NotFoundError
from contingencies.files import write_atomically
from zoo.paper import BEYOND
from zoo.paper.formats import columns, lines_of
from zoo.paper.remarks import remarks_of
from zoo.paper.sections import Section, read_sections
from zoo.paper.tables import Table
from zoo.paper.verdicts import verdict

FIGURE_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}

INTRODUCTION = (
    "Every table and figure of the paper, measured here, beside what it published. Each entry names its budget, seeds, "
    "dates and machine. The paper's numbers stand in columns of their own; a dash means that there is no such "
    "number. What holds for every row of a table, or has a letter in several of them, is said once, below it. Budgets "
    "are minutes of one CPU core, and the paper does not say how long its trainings took, so a short budget shows what "
    "it buys, not what a method can reach."
)
WORDS = {
    "hard CCT": "the first clearing instant at which the largest separation of two machines reaches its limit; read by "
    "the smooth margin, the instant at which a smooth maximum of separations over pairs and times does, as in the "
    "paper, with sharpness β",
    "strict and fast": "the reduced swing equation by the paper's protocol, and by our compiled integrator",
    "pointwise residual": "the paper's: how far a network's derivative is from the swing equation at single instants",
    "shooting residual": "ours: how far its states are from those that the swing equation reaches from its own event "
    "states (rollouts)",
    "decisive part": "trajectories until machines are 1.5 pi apart, after which nothing more is decided",
    "chained": "our form of the model: short windows, each begun at the end of the one before",
    "other status": "severities at which only one of model and reference has a finite CCT",
}


def write_pages(folder: Path) -> int:
    """Write index.html and README.md from the entries in the folder; how many there are."""
    sections = read_sections(folder)
    if not sections:
        raise NotFoundError(f"{str(folder)!r} holds no entry of a report; name benchmarks to run, or another folder.")
    write_atomically(folder / "index.html", html_page(sections, folder).encode())
    write_atomically(folder / "README.md", markdown(sections).encode())
    return len(sections)


def markdown(sections: Sequence[Section]) -> str:
    """The report for a code host."""
    lines = ["# Benchmarks", "", INTRODUCTION, "", "[One page with all figures](index.html).", ""]
    lines += [*(f"- *{word}*: {meaning}." for word, meaning in WORDS.items()), ""]
    lines += _contents([(s, f"[{s.name}](#{s.name})") for s in sections])
    for section in sections:
        lines += [
            "",
            f"## {section.name}",
            "",
            *_bold(verdict(section.name, section.tables)),
            f"{section.title} ({section.source}).",
        ]
        lines.append("")
        lines += [f"*{section.circumstances.sentence}.*", ""]
        for table in section.tables:
            lines += [f"**{table.title}** ([CSV](tables/{section.name}-{table.name}.csv); {_source(table)})", ""]
            header = columns(table)
            lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
            lines += ["| " + " | ".join(map(_escaped, texts)) + " |" for texts in lines_of(table)]
            lines += ["", *(f"{text}\n" for text in remarks_of(table).below)]
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


def _source(table: Table) -> str:
    return table.source if table.source == BEYOND else f"paper: {table.source}"


def _bold(text: str) -> list[str]:
    return [f"**{text}**", ""] if text else []


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem;color:#1b1f24}
h2{margin-top:3rem;border-top:1px solid #d0d7de;padding-top:1rem}
.around,.why,small{color:#57606a;font-size:13px} table{border-collapse:collapse;margin:.6rem 0 1.4rem;font-size:13.5px}
th,td{border:1px solid #d0d7de;padding:.3rem .6rem;text-align:right;vertical-align:top} th{background:#f6f8fa}
td{white-space:nowrap} th:first-child,td:first-child,.why{text-align:left} td.why{white-space:normal;min-width:15rem}
.paper{color:#8250df} figure{margin:1rem 0} figure img{max-width:100%}
dl{font-size:13.5px} dt{font-weight:600} dd{margin:0 0 .3rem 1rem}
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
        "<dl>", *(f"<dt>{e(word)}</dt><dd>{e(meaning)}.</dd>" for word, meaning in WORDS.items()), "</dl>",
        '<div class="scroll"><table>',
        '<tr><th>entry</th><th class="why">what it repeats</th><th>budget</th><th>seeds</th></tr>',
    ]  # fmt: skip
    for s in sections:
        parts.append(
            f'<tr><td><a href="#{e(s.name)}">{e(s.name)}</a></td><td class="why">{e(s.title)} ({e(s.source)})</td>'
            f"<td>{e(s.circumstances.budget)}</td><td>{s.circumstances.seeds}</td></tr>"
        )
    parts.append("</table></div>")
    for s in sections:
        said = verdict(s.name, s.tables)
        parts += [
            f'<h2 id="{e(s.name)}">{e(s.name)}</h2>',
            *([f"<p><strong>{e(said)}</strong></p>"] if said else []),
            f"<p>{e(s.title)} ({e(s.source)}).</p>",
        ]
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
    header = columns(table)
    kinds = [{"paper": ' class="paper"', "remarks": ' class="why"'}.get(name, "") for name in header]
    head = "".join(f"<th{kind}>{e(name)}</th>" for kind, name in zip(kinds, header, strict=True))
    rows = [
        "<tr>" + "".join(f"<td{kind}>{e(text)}</td>" for kind, text in zip(kinds, texts, strict=True)) + "</tr>"
        for texts in lines_of(table)
    ]
    once = "".join(f'<p class="around">{e(text)}</p>' for text in remarks_of(table).below)
    return (
        f"<h3>{e(table.title)}</h3><small>{e(_source(table))}</small>"
        f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>{once}'
    )
