"""How a service runs. Worker processes get it through the environment, the only thing that reaches all of them."""

import ipaddress
import json
import os
from dataclasses import asdict, dataclass

from contingencies.errors import UsageError

VARIABLE = "CCT_ZOO_SERVICE"
DEFAULT_PORT = 8420


@dataclass(frozen=True)
class Settings:
    """Where the registry is, where the service listens, and its limits per worker."""

    home: str
    registry_url: str | None = None
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    rate: float = 2000.0  # requests per second and token; twice as many at once
    max_body: int = 8_000_000  # bytes: 100,000 rows with names of 40 characters
    simulations: int = 2  # what-if simulations at a time
    waiting: int = 8  # what-if requests that may wait for one
    mlflow_url: str | None = None  # where people open MLflow; runs link to it
    access_log: bool = True

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def to_environment(self) -> None:
        """Hand the settings to worker processes started from here."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    @staticmethod
    def from_environment() -> "Settings":
        """The settings that the parent process handed over."""
        try:
            return Settings(**json.loads(os.environ[VARIABLE]))
        except (KeyError, ValueError, TypeError):
            raise UsageError("the service has no settings; start it with 'cct-zoo serve'.") from None
