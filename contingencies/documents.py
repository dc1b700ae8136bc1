"""YAML documents with the line of every field, and validation errors that point at it.

YAML 1.2 rules (`1e-3` is a number, `no` is a string, a repeated key is an error). A document
becomes plain dicts, tuples and scalars plus a map from field path to line, so that a
complaint about a value can name the line it stands on.
"""

import difflib
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.scalarbool import ScalarBoolean
from ruamel.yaml.scalarfloat import ScalarFloat
from ruamel.yaml.scalarint import ScalarInt
from ruamel.yaml.scalarstring import ScalarString

from contingencies.errors import SpecError
from contingencies.files import read_regular

MAX_BYTES = 16_000_000  # about 40,000 contingencies; a larger file is a mistake
MAX_DEPTH = 20  # the deepest valid document has depth 4
MAX_DOCUMENTS = 50_000
MAX_ENTRIES = 50_000  # of one document: some 8,000 machines; the parser takes about a second for them
_BRACKETS = re.compile(r"[][{}]")
_DASHES = re.compile(rf"(?:[-?] +){{{MAX_DEPTH}}}")  # lists in lists on one line
_MARKERS = re.compile(r"^---", re.M)

STANDARD_TAGS = (None, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!!map", "!!seq")
REMEDIES = (  # part of pydantic's error type -> what to do
    ("finite_number", "write a finite number"),
    ("float", "write a plain number without quotes"),
    ("int", "write a whole number without quotes"),
    ("string_pattern", "use lower-case letters, digits, '.', '_' and '-', starting with a letter or digit"),
    ("string_type", "write plain text"),
    ("greater", "write a larger number"),
    ("less", "write a smaller number"),
    ("too_long", "write a shorter text"),
    ("too_short", "write a longer text"),
)

Model = TypeVar("Model", bound=BaseModel)
FieldPath = tuple[str | int, ...]


class FieldError(ValueError):
    """Raised by a model's validator about one of its fields, so that the error can point at it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Document:
    """One YAML document: its plain content, and the line (1-based) of each field."""

    source: str
    content: Any
    lines: dict[FieldPath, int]

    def line_of(self, path: FieldPath) -> int:
        """Line of the deepest known ancestor of `path`."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def where(self, path: FieldPath) -> str:
        """File, line and field, as every complaint about a field begins."""
        return f"{self.source}:{self.line_of(path)}: {dotted(path)}"


def read_documents(path: Path) -> list[Document]:
    """All documents of a YAML file; empty documents are left out."""
    content = read_regular(path, MAX_BYTES)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    return parse_documents(text, str(path))


def _check_extent(text: str, source: str) -> None:
    """Refuse, before the parser spends minutes on it, what no description can be."""
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth = depth + 1 if bracket[0] in "[{" else max(depth - 1, 0)
        if depth > MAX_DEPTH:
            raise SpecError(f"{source}: nested too deeply; write the fields out plainly.")
    if _DASHES.search(text):
        raise SpecError(f"{source}: nested too deeply; write the fields out plainly.")
    documents = _MARKERS.split(text, MAX_DOCUMENTS)
    if len(documents) > MAX_DOCUMENTS:
        raise SpecError(f"{source}: holds more than {MAX_DOCUMENTS} documents; split it into several files.")
    if any(document.count(",") + document.count("\n") > MAX_ENTRIES for document in documents):
        raise SpecError(f"{source}: a document has more than {MAX_ENTRIES} entries; no description needs so many.")


def parse_documents(text: str, source: str) -> list[Document]:
    """All documents of a YAML text; `source` names it in errors."""
    _check_extent(text, source)
    loader = YAML(typ="rt", pure=True)
    loader.allow_duplicate_keys = False
    documents = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)  # YAML allows it, and the user hears of no line
            for root in loader.load_all(text):
                if root is None:
                    continue
                lines: dict[FieldPath, int] = {(): _line(root)}
                documents.append(Document(source, _Plain(source, lines).convert(root), lines))
    except SpecError:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        problem = " ".join(str(error.problem or error.context).split())
        if "duplicate key" in problem:
            problem = problem.split(" with value")[0] + ", write each field once"
        raise SpecError(f"{where}: not valid YAML ({problem}); correct the syntax.") from None
    except YAMLError as error:
        problem = " ".join(str(error).split())
        raise SpecError(f"{source}: not valid YAML ({problem}); correct the syntax.") from None
    except (ValueError, RecursionError, OverflowError, KeyError, TypeError, AttributeError, AssertionError) as error:
        # ruamel lets a few malformed scalars (dates, deep nesting) escape as plain errors
        raise SpecError(
            f"{source}: not valid YAML ({type(error).__name__}: {str(error)[:80]}); correct the syntax."
        ) from None
    return documents


def _line(node: Any) -> int:
    mark = getattr(node, "lc", None)
    return (mark.line or 0) + 1 if mark is not None else 1


class _Plain:
    """Turns ruamel's round-trip nodes into plain values, noting the line of each."""

    def __init__(self, source: str, lines: dict[FieldPath, int]) -> None:
        self.source, self.lines = source, lines
        self.seen: set[int] = set()

    def convert(self, node: Any, path: FieldPath = ()) -> Any:
        if len(path) > MAX_DEPTH:
            raise SpecError(f"{self.source}: nested too deeply; write the fields out plainly.")
        if isinstance(node, CommentedMap | CommentedSeq):
            if id(node) in self.seen:  # nested aliases can make a small file explode when it is expanded
                raise SpecError(
                    f"{self.source}:{self.lines.get(path, 1)}: {dotted(path)}: repeats another part by an alias; "
                    "write the fields out plainly."
                )
            self.seen.add(id(node))
        if isinstance(node, CommentedMap | CommentedSeq) and node.tag.value not in STANDARD_TAGS:
            raise SpecError(
                f"{self.source}:{self.lines.get(path, 1)}: {dotted(path)}: the tag {str(node.tag.value)[:40]!r} is not "
                "allowed; leave out tags."
            )
        if isinstance(node, CommentedMap):
            return self._mapping(node, path)
        if isinstance(node, CommentedSeq):
            for i in range(len(node)):
                self.lines[(*path, i)] = node.lc.item(i)[0] + 1
            return tuple(self.convert(item, (*path, i)) for i, item in enumerate(node))
        for kind, plain in ((ScalarBoolean, bool), (ScalarInt, int), (ScalarFloat, float), (ScalarString, str)):
            if isinstance(node, kind):
                return plain(node)
        if node is None or type(node) in (bool, int, float, str):
            return node
        where = self.lines.get(path, 1)
        raise SpecError(
            f"{self.source}:{where}: {dotted(path)}: a {type(node).__name__} is not allowed here; "
            "write a plain number or text (quote dates, leave out tags)."
        )

    def _mapping(self, node: CommentedMap, path: FieldPath) -> dict[str, Any]:
        plain = {}
        for key, value in node.items():
            if not isinstance(key, str) and type(key) is not int:  # a bus number may name a field
                raise SpecError(
                    f"{self.source}:{_line(node)}: {dotted(path)}: the field name {str(key)[:40]!r} is not text; "
                    "field names are words."
                )
            name = str(key)
            position = node.lc.data.get(key) if node.lc.data else None
            self.lines[(*path, name)] = position[0] + 1 if position else _line(node)
            plain[name] = self.convert(value, (*path, name))
        return plain


def dotted(path: FieldPath) -> str:
    """`('window', 't_c', 0)` as people write it: `window.t_c[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text or "the document"


def validate(model: type[Model], document: Document) -> Model:
    """The document as a `model`, or a SpecError with file, line, field, fault and remedy of every mistake."""
    try:
        return model.model_validate(document.content)
    except ValidationError as error:
        sentences = dict.fromkeys(_sentence(model, document, problem) for problem in _causes(error.errors()))
        raise SpecError("\n".join(sentences)) from None


def _causes(problems: list[Any]) -> list[Any]:
    """Problems without those that only follow from others: entries that are wrong are missing from their list."""
    inside = {problem["loc"][:k] for problem in problems for k in range(len(problem["loc"]))}
    return [problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in inside]


def _sentence(model: type[BaseModel], document: Document, problem: Any) -> str:
    path = _document_path(document.content, problem["loc"])
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, FieldError):
        path = (*path, cause.field)
    text = f"{document.where(path)}: {_fault(model, problem, path)}."
    return " ".join(text.split())  # a field's name may hold a line break; a sentence is one line


def _document_path(content: Any, loc: tuple[str | int, ...]) -> FieldPath:
    """Pydantic's location without the names of union members, which no document contains."""
    path: list[str | int] = []
    here, tag_seen = content, False
    for index, step in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(here, dict) and not last and not tag_seen and step in (here.get("kind"), here.get("action")):
            tag_seen = True
            continue
        if isinstance(here, dict) and step in here:
            here, tag_seen = here[str(step)], False
        elif isinstance(here, tuple) and isinstance(step, int) and step < len(here):
            here = here[step]
        elif not last or not isinstance(here, dict | tuple):
            continue
        path.append(step)
    return tuple(path)


def _fault(model: type[BaseModel], problem: Any, path: FieldPath) -> str:
    kind, message = problem["type"], problem["msg"]
    given = problem.get("input")
    if kind == "missing":
        return "is missing; add it"
    if kind == "extra_forbidden":
        return f"is not a known field; remove it{_suggestion(str(path[-1]), model)}"
    if kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip(".")
    if kind == "union_tag_not_found":
        tag = str(problem["ctx"]["discriminator"]).strip("'")
        return f"does not say its {tag}; add {tag}: and one of the kinds in the schema"
    if kind == "union_tag_invalid":
        context = problem["ctx"]
        tag = str(context["discriminator"]).strip("'")
        return f"{context['tag']!r} is not a known {tag}; use one of {context['expected_tags']}"
    if kind in ("too_short", "too_long"):
        few, context = kind == "too_short", problem["ctx"]
        bound = f"at least {context['min_length']}" if few else f"at most {context['max_length']}"
        return f"has {len(given or ())} entries, and {bound} may stand here; write {'more' if few else 'fewer'}"
    shown = repr(given)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    remedy = next((text for part, text in REMEDIES if part in kind), "see 'cct-zoo schema' for what may stand here")
    return f"{message[0].lower()}{message[1:]}, not {shown}; {remedy}"


def _suggestion(name: str, model: type[BaseModel]) -> str:
    """The known field that looks most like `name`, among all fields of the schema."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    known = {field.lower(): field for part in parts for field in part.get("properties", {})}
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f" or write {known[close[0]]!r}" if close else " (see 'cct-zoo schema')"
