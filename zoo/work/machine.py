"""Which machine does the work, and when: kept with each result, because the same minutes are more work on another."""

import os
import platform
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any


def here_and_now() -> dict[str, Any]:
    """When, on which machine, and how many processes wanted its cores in the last five minutes, as JSON values."""
    made: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    return made | {"load": round(os.getloadavg()[1], 1)} if hasattr(os, "getloadavg") else made


@lru_cache(maxsize=1)
def machine() -> str:
    """The processor, and what runs on it."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {version('torch')}"
