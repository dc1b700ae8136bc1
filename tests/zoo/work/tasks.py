"""Jobs for the tests of executors; at the top of a module, so that workers can import them."""

import os
import signal
import time
from pathlib import Path

from contingencies.errors import SolverError


def square(number: int) -> int:
    return number * number


def pause(seconds: float, number: int) -> int:
    time.sleep(seconds)
    return number


def die_once(marker: str, number: int) -> int:
    """Killed on the first attempt, as by the kernel when memory runs out; the second one succeeds."""
    path = Path(marker)
    if not path.exists():
        path.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die_always() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    raise SolverError("the swing equation has no finite answer here.")


def stumble() -> None:
    raise ValueError("not a number")


def threads(number: int) -> list[int]:
    import torch

    return [torch.get_num_threads(), os.getpid()]


def count(folder: str, number: int, seconds: float = 0.0) -> int:
    """Leaves one file per call, so that calls can be counted."""
    Path(folder, f"{number}-{time.time_ns()}-{os.getpid()}").touch()
    time.sleep(seconds)
    return number


def count_job(number: int, folder: str, seconds: float = 0.0) -> dict[str, int]:
    return {"number": count(folder, number, seconds)}


def fail_until(number: int, marker: str) -> dict[str, int]:
    if not Path(marker).exists():
        raise SolverError("not yet.")
    return {"number": number}
