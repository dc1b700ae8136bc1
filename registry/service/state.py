"""What the parts of a running service share."""

from dataclasses import dataclass

from contingencies.errors import UsageError
from registry.home import Home
from registry.query import Registry
from registry.service.answers import Answerer
from registry.service.guard import Guard
from registry.service.metrics import Metrics
from registry.service.settings import Settings
from registry.service.whatif import Kept, WhatIf
from registry.store import tokens

KEPT_DRAWINGS = 64


@dataclass(frozen=True, eq=False)
class Service:
    """One worker's registry, callers, simulations and counters."""

    settings: Settings
    registry: Registry
    answers: Answerer
    guard: Guard
    whatif: WhatIf
    metrics: Metrics
    drawings: Kept

    @property
    def home(self) -> Home:
        return self.registry.home

    @staticmethod
    def open(settings: Settings) -> "Service":
        """Open the registry; refused where strangers could reach a service without tokens."""
        registry = Registry.open(settings.home, settings.registry_url)
        database = registry.home.database
        if not settings.is_loopback and not tokens.exist(database):
            registry.close()
            raise UsageError(
                f"{settings.host} can be reached from other machines and there is no token; make one with "
                "'cct-zoo token create NAME --role read', or listen on 127.0.0.1."
            )

        def open_to_all() -> bool:
            return settings.is_loopback and not tokens.exist(database)

        return Service(
            settings,
            registry,
            Answerer(registry),
            Guard(database, open_to_all, settings.rate),
            WhatIf(registry.home, settings.simulations, settings.waiting),
            Metrics(),
            Kept(KEPT_DRAWINGS),
        )

    def close(self) -> None:
        """Let go of everything."""
        self.answers.stop()
        self.whatif.close()
        self.registry.close()
