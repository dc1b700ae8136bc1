"""What has been learned, kept, and asked for: `from registry import Registry`, or `Client` for a service."""

from typing import Any

__all__ = ["CCTAnswer", "CCTAnswers", "Client", "Registry"]


def __getattr__(name: str) -> Any:
    """Public names, imported on first use so that importing the package costs nothing."""
    if name in __all__:
        from registry import client, query

        return getattr(client if name == "Client" else query, name)
    raise AttributeError(f"module 'registry' has no attribute {name!r}")
