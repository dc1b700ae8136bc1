"""Running the application: uvicorn, or granian where it is installed; workers share a port and their counters."""

import contextlib
import shutil
import signal
import socket
import tempfile
from pathlib import Path

from contingencies.errors import UsageError, ZooError
from registry.service.settings import Settings

FACTORY = "registry.service.app:from_environment"
STOP_S = 4  # open requests get this long; the whole stop takes less than 5 s
BACKLOG = 1024


def check_port(settings: Settings) -> None:
    """Refuse a port that cannot be had, in one sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{settings.host}:{settings.port} cannot be listened on ({reason}); choose another --port or --host."
        ) from None


def run_server(settings: Settings, workers: int = 1, server: str = "uvicorn") -> None:
    """Serve until the process is told to stop."""
    check_port(settings)
    settings.to_environment()
    folder = Path(tempfile.mkdtemp(prefix="cct-zoo-metrics-")) if workers > 1 else None
    try:
        if folder is not None:
            from registry.service.metrics import use_folder

            use_folder(folder)
        # uvicorn raises the signal that stopped it once more, after it has stopped; an orderly end is no failure.
        signal.signal(signal.SIGTERM, lambda *_: None)
        (_granian if server == "granian" else _uvicorn)(settings, workers)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _uvicorn(settings: Settings, workers: int) -> None:
    import uvicorn

    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises what stopped it, after it has stopped
        uvicorn.run(
            FACTORY,
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=workers if workers > 1 else None,
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=STOP_S,
            backlog=BACKLOG,
            ws="none",
        )


def _granian(settings: Settings, workers: int) -> None:
    try:
        from granian import Granian
        from granian.constants import Interfaces
    except ImportError:
        raise ZooError("granian is not installed; 'pip install granian' adds it, or use uvicorn.") from None
    Granian(
        FACTORY,
        factory=True,
        address=settings.host,
        port=settings.port,
        workers=workers,
        interface=Interfaces.ASGI,
        backlog=BACKLOG,
        log_access=False,
        workers_kill_timeout=STOP_S,
        websockets=False,
    ).serve()
