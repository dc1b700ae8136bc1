"""The zoo from Python: `import zoo`, then `zoo.reference_cct("ieee30-line-3-4-restore", 0.93)`.

Names are resolved when they are first used, so that importing the package costs nothing and a program that only
asks deployed heads never loads torch or pandapower.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contingencies.errors import ZooError
    from contingencies.library import Contingency, System, load_contingency, load_system
    from contingencies.recipes import Recipe
    from registry.client import Client
    from registry.query import CCTAnswer, CCTAnswers, Registry
    from zoo.facade.deploying import Deployment, deploy
    from zoo.facade.frames import to_frame
    from zoo.facade.heads import DistilledHead, distill
    from zoo.facade.learning import LearnedBoundary, Training, learned_boundary, train
    from zoo.facade.references import (
        ReferenceBoundary,
        ReferenceCCT,
        Simulation,
        boundary,
        reference_cct,
        simulate,
    )
    from zoo.facade.screening import Screening, screen

_HOMES = {  # name -> module that defines it
    "ZooError": "contingencies.errors",
    "Contingency": "contingencies.library",
    "System": "contingencies.library",
    "load_contingency": "contingencies.library",
    "load_system": "contingencies.library",
    "Recipe": "contingencies.recipes",
    "Client": "registry.client",
    "CCTAnswer": "registry.query",
    "CCTAnswers": "registry.query",
    "Registry": "registry.query",
    "to_frame": "zoo.facade.frames",
    "ReferenceBoundary": "zoo.facade.references",
    "ReferenceCCT": "zoo.facade.references",
    "Simulation": "zoo.facade.references",
    "boundary": "zoo.facade.references",
    "reference_cct": "zoo.facade.references",
    "simulate": "zoo.facade.references",
    "Screening": "zoo.facade.screening",
    "screen": "zoo.facade.screening",
    "LearnedBoundary": "zoo.facade.learning",
    "Training": "zoo.facade.learning",
    "learned_boundary": "zoo.facade.learning",
    "train": "zoo.facade.learning",
    "DistilledHead": "zoo.facade.heads",
    "distill": "zoo.facade.heads",
    "Deployment": "zoo.facade.deploying",
    "deploy": "zoo.facade.deploying",
}

__all__ = [
    "CCTAnswer",
    "CCTAnswers",
    "Client",
    "Contingency",
    "Deployment",
    "DistilledHead",
    "LearnedBoundary",
    "Recipe",
    "ReferenceBoundary",
    "ReferenceCCT",
    "Registry",
    "Screening",
    "Simulation",
    "System",
    "Training",
    "ZooError",
    "boundary",
    "deploy",
    "distill",
    "learned_boundary",
    "load_contingency",
    "load_system",
    "reference_cct",
    "screen",
    "simulate",
    "to_frame",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"zoo has no {name!r}; dir(zoo) lists what it has.")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
