"""What has been learned, kept, and asked for: `from registry import Registry`."""

from typing import Any

__all__ = ["CCTAnswer", "CCTAnswers", "Registry"]


def __getattr__(name: str) -> Any:
    """Public names, imported on first use so that importing the package costs nothing."""
    if name in __all__:
        from registry import query

        return getattr(query, name)
    raise AttributeError(f"module 'registry' has no attribute {name!r}")
