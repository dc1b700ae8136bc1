"""Operating points over HTTP: conditions such as `load=1.1` beside the other parameters of a question."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from contingencies.errors import UsageError
from contingencies.points import check_names
from espinn_moe.condition_head import AnyHead, ConditionHead
from registry.service.problems import invalid

# As the documents write it: what a condition may be called, see `contingencies.conditions`.
NAME_PATTERN = r"^(load(\.[a-z][a-z0-9_-]{0,39})?|generation\.(0|[1-9][0-9]{0,9})|position)$"
_NAME = re.compile(NAME_PATTERN.replace("$", r"\Z"))
MAX_CONDITIONS = 64  # different ones in one request: contingencies have at most six each


def is_condition(name: str) -> bool:
    """Whether a parameter can be the name of a condition."""
    return _NAME.match(name) is not None


def number_of(name: str, text: str) -> float:
    """The value of a condition as it is written in an address."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise invalid(f"{name} = {text[:60]!r} is not a finite number.")
    return value


def conditions_in(pairs: Any) -> dict[str, float]:
    """The conditions among pairs of parameter and text, each of which may be given once."""
    given: dict[str, float] = {}
    for name, text in pairs:
        if is_condition(name):
            if name in given:
                raise invalid(f"{name} is given twice; give each condition once.")
            given[name] = number_of(name, text)
    return given


def head_at(head: AnyHead, name: str, given: Mapping[str, float]) -> AnyHead:
    """A head that answers at an operating point where nothing else is said.

    Raises
    ------
    UsageError
        A condition is not known, or one that is left out has a case's own value that is out of its range.
    """
    if isinstance(head, ConditionHead):
        return replace(head, own=tuple(float(value) for value in head.values(given, name)))
    check_names(name, (), given)
    return head


def point_of_head(head: AnyHead) -> dict[str, float]:
    """The operating point at which a head answers where nothing else is said."""
    if not isinstance(head, ConditionHead):
        return {}
    return {axis.name: value for axis, value in zip(head.axes, head.own, strict=True)}


def answer_at(head: AnyHead, alpha: float, given: Mapping[str, float]) -> tuple[float | None, str, float | None]:
    """CCT (s), status and bound (s) for a list of contingencies; out-of-domain where a head knows no such point."""
    if isinstance(head, ConditionHead):
        known = {axis.name for axis in head.axes}
        try:
            if set(given) <= known:
                return head.bounded(alpha, head.values(given))
        except UsageError:  # the case's own value lies out of a range
            pass
        return None, "out-of-domain", None
    if given:
        return None, "out-of-domain", None
    cct, status = head.answer(alpha)
    return cct, status, None if cct is None else head.error_bound_s
