"""Routes for whoever runs the service: health, readiness, metrics. Health and readiness need no token."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text

from contingencies.errors import ZooError
from registry.service.api.messages import Health
from registry.service.api.parts import TheService
from registry.service.metrics import gauges
from registry.service.ranking import rank
from registry.store.events import now

router = APIRouter(tags=["operating"])


@router.get("/healthz")
def get_health() -> Health:
    """The process answers."""
    return Health(status="ok", detail="the service answers")


@router.get("/readyz", responses={503: {"model": Health, "description": "not ready"}})
def get_readiness(service: TheService, response: Response) -> Health:
    """Database and artifacts can be reached."""
    try:
        with service.home.database.read() as session:
            session.execute(text("SELECT 1"))
        if service.home.artifacts.root.exists():
            next(service.home.artifacts.root.iterdir(), None)
    except ZooError:
        response.status_code = 503
        return Health(status="away", detail="the registry cannot be reached; queries go on from loaded heads")
    except OSError:
        response.status_code = 503
        return Health(status="away", detail="the artifacts cannot be read")
    return Health(status="ok", detail="database and artifacts can be reached")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def get_metrics(service: TheService) -> Response:
    """Everything for Prometheus."""
    away, ranked = False, []
    try:
        ranked = rank(service.registry)
    except ZooError:
        away = True
    return Response(service.metrics.text(gauges(ranked, now(), away)), media_type=CONTENT_TYPE_LATEST)
