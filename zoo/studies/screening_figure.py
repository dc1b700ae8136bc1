"""The figure of a screening: the most critical members as bars, the rest in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from contingencies.protection import Verdict
from contingencies.spec import ContingencySpec
from zoo.plots import new_figure
from zoo.studies.screening import Screened

MOST_DRAWN = 40


def plot_screening(
    answers: Sequence[Screened],
    specs: Mapping[str, ContingencySpec],
    title: str,
    verdicts: Sequence[Verdict | None],
) -> Any:
    """Ranked durations of the finite members as bars; how many others there are stands below.

    Parameters
    ----------
    answers : sequence of Screened
        Ranked; the first 40 that are finite, or unstable throughout the window, are drawn.
    specs : mapping
        Name of a member -> its description, for the studied clearing instants.
    title : str
    verdicts : sequence of Verdict or None
        One per answer. The required time is a line through all bars, or through each its own.

    Returns
    -------
    matplotlib.figure.Figure
    """
    critical = [k for k, answer in enumerate(answers) if answer.status in ("left-censored", "finite")]
    shown = critical[:MOST_DRAWN]
    figure, axes = new_figure(height=1.4 + 0.22 * max(len(shown), 4))
    for row, k in enumerate(shown):
        duration, window = answers[k].duration, specs[answers[k].contingency].window
        if duration is None:
            axes.barh(row, 1e3 * (window.t_c[0] - window.t_f), color="none", edgecolor="C3", hatch="//")
        else:
            axes.barh(row, 1e3 * duration, color="C0")
    _required_lines(axes, [verdicts[k] for k in shown])
    axes.set_yticks(range(len(shown)), [answers[k].contingency for k in shown], fontsize=7)
    axes.invert_yaxis()
    failed = sum(answer.status == "failed" for answer in answers)
    rest = {
        "more": len(critical) - len(shown),
        _stable_words(specs): len(answers) - len(critical) - failed,
        "failed": failed,
    }
    others = ", ".join(f"{count} {what}" for what, count in rest.items() if count)
    below = " (hatched: below the window)" if any(answers[k].duration is None for k in shown) else ""
    axes.set_xlabel(f"critical fault duration, ms{below}" + (f"\nnot drawn: {others}" if others else ""))
    axes.set_title(title, fontsize=9, wrap=True)
    return figure


def _required_lines(axes: Any, verdicts: Sequence[Verdict | None]) -> None:
    required = [None if verdict is None else 1e3 * verdict.required for verdict in verdicts]
    stated = {time for time in required if time is not None}
    if len(stated) == 1 and None not in required:
        axes.axvline(min(stated), color="C3", lw=1.2, label=f"required: {min(stated):g} ms")
    else:
        label = "required"
        for row, time in enumerate(required):
            if time is not None:
                axes.plot([time, time], [row - 0.45, row + 0.45], color="C3", lw=1.6, label=label)
                label = ""
    if stated:
        axes.legend(fontsize=8)


def _stable_words(specs: Mapping[str, ContingencySpec]) -> str:
    longest = {1e3 * (spec.window.t_c[1] - spec.window.t_f) for spec in specs.values()}
    return f"stable when cleared within {min(longest):g} ms" if len(longest) == 1 else "stable throughout their windows"
