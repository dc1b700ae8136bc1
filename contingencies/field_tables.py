"""The fields of a description file as a table for people, made from the models that check the file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contingencies.records import Record

HEADING = ("field", "of", "value", "default", "meaning")
WHICH = "which of them it is"
KINDS = {"number": "number", "integer": "integer", "string": "text", "boolean": "true or false", "object": "mapping"}


@dataclass(frozen=True)
class FieldRow:
    """One field: its dotted path, in which variants it is there, what it holds, and what it means."""

    path: str
    variant: str  # as "kind: bus"; empty where it is always there
    value: str
    default: str
    meaning: str


def field_rows(record: type[Record]) -> list[FieldRow]:
    """All fields of a file that `record` describes, in order; a field of several variants is one row."""
    schema = record.model_json_schema()
    rows: dict[tuple[str, ...], FieldRow] = {}
    for row in _rows(schema, schema.get("$defs", {}), "", ""):
        if row.meaning == WHICH:
            known = rows.get((row.path, WHICH))
            values = row.value if known is None else f"{known.value}, {row.value}"
            rows[row.path, WHICH] = FieldRow(row.path, "", values, row.default, WHICH)
            continue
        key = (row.path, row.value, row.default, row.meaning)
        known = rows.get(key)
        variant = row.variant if known is None else f"{known.variant}; {row.variant}"
        rows[key] = FieldRow(row.path, variant, row.value, row.default, row.meaning)
    return list(rows.values())


def field_table(record: type[Record]) -> str:
    """The same as a Markdown table."""
    rows = [(f"`{r.path}`", r.variant, r.value, r.default, r.meaning) for r in field_rows(record)]
    lines = [HEADING, ("---",) * len(HEADING), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _rows(model: Mapping[str, Any], parts: Mapping[str, Any], prefix: str, variant: str) -> Iterator[FieldRow]:
    required = model.get("required", ())
    for name, field in model.get("properties", {}).items():
        path = f"{prefix}{name}"
        default = "required" if name in required else _default(field.get("default"))
        inner = _inner(field)
        if "const" in inner:
            yield FieldRow(path, variant, f"`{inner['const']}`", default, WHICH)
            continue
        models = list(_models(inner, parts))
        if not models or "description" in field:
            yield FieldRow(path, variant, _value(inner), default, field.get("description", ""))
        listed = "[]" if inner.get("type") == "array" else ".NAME" if inner.get("type") == "object" else ""
        for choice, part in models:
            yield from _rows(part, parts, f"{path}{listed}.", choice or variant)


def _inner(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a field holds when it is there."""
    options = [each for each in field.get("anyOf", ()) if each.get("type") != "null"]
    return options[0] if len(options) == 1 else field


def _models(field: Mapping[str, Any], parts: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The descriptions that a field holds, each with what tells it from the others."""
    discriminator = field.get("discriminator", {})
    named = {reference: value for value, reference in discriminator.get("mapping", {}).items()}
    patterns = field.get("patternProperties", {}).values()
    for each in (*field.get("oneOf", ()), field, field.get("items", {}), *patterns):
        if "$ref" in each:
            choice = f"{discriminator['propertyName']}: {named[each['$ref']]}" if each["$ref"] in named else ""
            yield choice, parts[each["$ref"].rpartition("/")[2]]


def _value(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        count = len(field.get("prefixItems", ()))
        return {2: "two numbers", 3: "three numbers"}.get(count, "list")
    return KINDS.get(field.get("type", ""), "mapping")


def _default(value: Any) -> str:
    return "-" if value in (None, "", [], {}) else f"`{value}`"
