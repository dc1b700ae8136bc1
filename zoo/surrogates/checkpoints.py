"""Surrogates as bytes and back: weights as safetensors, everything else as one JSON string beside them.

A checkpoint knows which contingencies it serves, by the SHA-256 of their physics, and carries their
descriptions, so that one member and its system are enough to rebuild the whole model. It is
refused for any other contingency or system. Nothing is unpickled.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from contingencies.errors import ConflictError, IntegrityError, ZooError
from contingencies.library import Contingency
from contingencies.operators import compile_members
from espinn_moe.surrogate import Surrogate
from zoo.surrogates.catalogue import create_model
from zoo.work.code import code_version

KIND = "surrogate"  # of the registry's checkpoint rows
FORMAT = 1
METADATA_KEY = "cct_zoo"  # one key only: safetensors does not keep the order of several


@dataclass(frozen=True, eq=False)
class Loaded:
    """A surrogate read back, and which of its members was asked for."""

    model: str  # name in the catalogue
    surrogate: Surrogate
    member: int
    metadata: dict[str, Any]


def to_bytes(
    model: str, surrogate: Surrogate, contingencies: Sequence[Contingency], training: Mapping[str, Any] | None = None
) -> bytes:
    """A checkpoint.

    Parameters
    ----------
    model : str
        Name in the catalogue.
    surrogate : Surrogate
        Its weights and scales are stored, with the settings to rebuild it.
    contingencies : sequence of Contingency
        Its members, in order.
    training : mapping, optional
        Plain values about the training, for people.
    """
    assert [c.name for c in contingencies] == [m.name for m in surrogate.members]
    metadata = {
        "format": FORMAT,
        "model": model,
        "settings": surrogate.settings(),
        "members": [
            {"name": c.name, "sha256": c.sha256, "canonical": json.loads(c.canonical_json), "spec": c.to_json()}
            for c in contingencies
        ],
        "system": {"name": contingencies[0].system.name, "sha256": contingencies[0].system.sha256},
        "code_version": code_version(),
        "training": dict(training or {}),
    }
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in surrogate.state_dict().items()}
    return save(tensors, metadata={METADATA_KEY: json.dumps(metadata, sort_keys=True, allow_nan=False)})


def read_metadata(content: bytes) -> dict[str, Any]:
    """What a checkpoint says about itself; its weights are not read."""
    try:
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][METADATA_KEY])
        version = metadata["format"]
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise IntegrityError("the checkpoint is damaged or is none; train again, or restore it.") from None
    if version != FORMAT:
        raise ZooError(f"the checkpoint has format {version}, this cct-zoo reads {FORMAT}; update cct-zoo.")
    assert isinstance(metadata, dict)
    return metadata


def from_bytes(content: bytes, contingency: Contingency) -> Loaded:
    """The surrogate of a checkpoint, for one of its members.

    Raises
    ------
    ConflictError
        When the checkpoint belongs to other contingencies or to another system.
    IntegrityError
        When it is damaged.
    """
    metadata = read_metadata(content)
    member = member_of(metadata, contingency)
    contingencies = [Contingency.from_json(each["spec"], contingency.system) for each in metadata["members"]]
    if [c.sha256 for c in contingencies] != [each["sha256"] for each in metadata["members"]]:
        raise IntegrityError("the checkpoint's contingencies do not have their SHA-256; restore it or train again.")
    surrogate = create_model(metadata["model"], compile_members(contingencies), **metadata["settings"])
    try:
        surrogate.load_state_dict(load(content))
    except (SafetensorError, RuntimeError) as error:
        raise IntegrityError(f"the checkpoint's weights do not fit its model ({str(error)[:120]}).") from None
    surrogate.eval()
    return Loaded(metadata["model"], surrogate, member, metadata)


def member_of(metadata: Mapping[str, Any], contingency: Contingency) -> int:
    """Which member of a checkpoint a contingency is; ConflictError when it is none."""
    names = [member["name"] for member in metadata["members"]]
    served = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    if metadata["system"]["sha256"] != contingency.system.sha256:
        raise ConflictError(
            f"the checkpoint was trained on system {metadata['system']['name']!r} ({served}) and cannot answer for "
            f"{contingency.name!r} on {contingency.system.name!r}, whose network or machines differ; train for it."
        )
    digests = [member["sha256"] for member in metadata["members"]]
    if contingency.sha256 not in digests:
        why = "another version of it" if contingency.name in names else "not for it"
        raise ConflictError(f"the checkpoint serves {served}, {why}: train for {contingency.name!r} as it is now.")
    return digests.index(contingency.sha256)
