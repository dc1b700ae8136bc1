"""The body of a query in columns: contingencies, severities and conditions of many rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from contingencies.errors import UsageError
from contingencies.points import check_names
from espinn_moe.condition_head import ConditionHead
from espinn_moe.head import Array, Codes
from registry.query import Deployed
from registry.service.points import MAX_CONDITIONS, is_condition
from registry.service.problems import invalid
from registry.store.deployments import PRODUCTION
from registry.texts import checked_alias

MAX_ROWS = 100_000
MAX_NAMES = 10_000  # different contingencies in one request: each is looked up once
COLUMNS = ("contingency", "alpha", "alias")
_NUMBERS = {int, float}
_NUMBERS_OR_NULL = {int, float, type(None)}


@dataclass(frozen=True, eq=False)
class Questions:
    """Rows that ask for a CCT."""

    names: list[str]  # different contingencies
    which: np.ndarray  # (m,) which of the names each row has
    alpha: Array  # (m,)
    alias: str
    conditions: dict[str, Array]  # (m,) each; NaN: the case's own value

    @property
    def rows(self) -> list[Any]:
        """The rows of each name."""
        if len(self.names) <= 1:
            return [slice(None)] * len(self.names)
        return np.split(np.argsort(self.which, kind="stable"), np.cumsum(np.bincount(self.which))[:-1])

    def answers(self, name: str, deployed: Deployed, rows: Any) -> tuple[Array, Codes, Any]:
        """CCT (s), status codes and bounds (s) of the rows of a contingency, in one go."""
        head = deployed.head
        given = {key: column[rows] for key, column in self.conditions.items()}
        given = {key: values for key, values in given.items() if not np.isnan(values).all()}
        if not isinstance(head, ConditionHead):
            check_names(name, (), given)
            cct, code = head.answers(self.alpha[rows])
            return cct, code, np.nan if head.error_bound_s is None else np.where(code == 0, head.error_bound_s, np.nan)
        complete = {key for key, values in given.items() if not np.isnan(values).any()}
        head.values(given, name)  # every name is known
        own = head.values({key: given[key] for key in complete}, name)  # and what is left out lies in its range
        columns = [given.get(axis.name, value) for axis, value in zip(head.axes, own, strict=True)]
        points = np.stack(np.broadcast_arrays(self.alpha[rows], *columns)[1:], -1)
        points = np.where(np.isnan(points), np.array(head.own), points)
        return head.bounded_answers(self.alpha[rows], points)


def read_questions(body: bytes) -> Questions:
    """The questions of a body, or a problem that says what is wrong with it."""
    content = _object(body)
    alias = content.pop("alias", PRODUCTION)
    if not isinstance(alias, str):
        raise invalid("alias must be text.")
    names, alpha = content.pop("contingency", None), content.pop("alpha", None)
    lists = [column for column in (names, alpha, *content.values()) if isinstance(column, list)]
    rows = len(lists[0]) if lists else 1
    if rows > MAX_ROWS:
        raise invalid(f"{rows} rows are too many; send at most {MAX_ROWS} at a time.")
    severities = _numbers("alpha", alpha, rows, _NUMBERS)
    if isinstance(names, str):
        names = [names] * rows
    if not isinstance(names, list) or not set(map(type, names)) <= {str}:
        raise invalid("column 'contingency' must be a list of names.")
    conditions = {key: _numbers(key, column, rows, _NUMBERS_OR_NULL) for key, column in content.items()}
    lengths = {"contingency": len(names), "alpha": len(severities)}
    for key, length in (lengths | {key: len(column) for key, column in conditions.items()}).items():
        if length != rows:
            raise invalid(f"the columns differ in length: {key} has {length} rows, another one {rows}.")
    numbers: dict[str, int] = {}
    which = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), dtype=np.int64, count=rows)
    if len(numbers) > MAX_NAMES:
        raise invalid(f"{len(numbers)} different contingencies are too many; send at most {MAX_NAMES} at a time.")
    return Questions(list(numbers), which, severities, checked_alias(alias), conditions)


def _object(body: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"the body is not JSON ({error}).") from None
    if not isinstance(content, dict):
        raise invalid('the body must be an object with columns, as {"contingency": [...], "alpha": [...]}.')
    for key in content:
        if key not in COLUMNS and not is_condition(key):
            known = ", ".join(COLUMNS)
            raise invalid(
                f"column {key[:60]!r} is not known; those that are known: {known}, and conditions such as load or "
                "generation.2.",
                known=list(COLUMNS),
            )
    if len(content) > MAX_CONDITIONS + len(COLUMNS):
        raise invalid(f"{len(content)} columns are too many; send at most {MAX_CONDITIONS} conditions at a time.")
    return content


def _numbers(key: str, column: Any, rows: int, allowed: set[type]) -> Array:
    """A column of numbers; a single one stands for equal ones, null for the case's own value."""
    values = column if isinstance(column, list) else [column]
    if not set(map(type, values)) <= allowed:
        raise invalid(f"column {key!r} must be a list of numbers.")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:
        raise UsageError(f"column {key!r} holds a number that is too large; give others.") from None
    return array if isinstance(column, list) else np.broadcast_to(array, (rows,))
