"""A tree of tensors and plain values as one safetensors file, never unpickled.

The state of a training (weights, optimiser moments, random generators, position in the schedule)
must survive a killed process and come back bit for bit. Tensors go into the safetensors part under
running numbers, the shape of the tree into one JSON string of its metadata.
"""

import json
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from contingencies.errors import IntegrityError

METADATA_KEY = "tree"  # one key only: safetensors does not keep the order of several


def tree_to_bytes(tree: Any) -> bytes:
    """A tree of dicts, lists, tuples, tensors, numbers, strings and None as safetensors bytes."""
    tensors: dict[str, Tensor] = {}
    shape = _encode(tree, tensors)
    return save(tensors, metadata={METADATA_KEY: json.dumps(shape)})


def tree_from_bytes(content: bytes, what: str = "state") -> Any:
    """The tree of `tree_to_bytes`; `what` names the content in the error for a damaged file."""
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        return _decode(json.loads(header["__metadata__"][METADATA_KEY]), tensors)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{what} is damaged and cannot be read ({error}); restore it, or start afresh.") from None


def _encode(node: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(node, Tensor):
        name = str(len(tensors))
        # The memory layout is kept: matrix products of the same numbers in another order of
        # memory differ in their last bits, and a resumed run would drift away.
        order = sorted(range(node.ndim), key=lambda axis: node.stride(axis), reverse=True)
        tensors[name] = node.detach().permute(order).contiguous().cpu().clone()
        return {"tensor": [name, order]}
    if isinstance(node, dict):
        return {"dict": [[key, _encode(value, tensors)] for key, value in node.items()]}
    if isinstance(node, list | tuple):
        kind = "list" if isinstance(node, list) else "tuple"
        return {kind: [_encode(value, tensors) for value in node]}
    if node is None or isinstance(node, bool | int | float | str):
        return {"value": node}
    raise TypeError(f"{type(node).__name__} cannot be kept in a state file")


def _decode(node: Any, tensors: dict[str, Tensor]) -> Any:
    ((kind, content),) = node.items()
    if kind == "tensor":
        name, order = content
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return tensors[name].clone().permute(inverse)
    if kind == "dict":
        return {key: _decode(value, tensors) for key, value in content}
    if kind in ("list", "tuple"):
        values = [_decode(value, tensors) for value in content]
        return values if kind == "list" else tuple(values)
    return content
