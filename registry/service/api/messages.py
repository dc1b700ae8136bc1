"""Questions, answers and changes of API v1: what is computed, and what callers send."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from registry.service.api.models import Interval, Measurement, Value
from registry.service.points import NAME_PATTERN

POINT = "the operating point: every condition with its value; empty without conditions"


class RankedOut(Value):
    """A contingency at a severity, with its margin to the required time."""

    contingency: str
    system: str
    version: int
    alpha: float
    status: str
    cct_s: float | None
    duration_s: float | None
    error_bound_s: float | None
    required_s: float | None
    margin_s: float | None = Field(description="duration less the error bound and the required time")
    margin_is: Literal["exact", "at-least", "at-most"] | None
    head: int | None
    checkpoint: int | None
    head_version: int | None
    source: str | None
    deployment: int | None
    deployed_at: datetime | None
    fault: str
    clearing: str
    alerts: list[str]


class ReferenceOut(Value):
    """Critical clearing times by the compiled ODE, in columns."""

    contingency: str
    version: int
    conditions: dict[str, float] = Field(description=POINT)
    alpha: list[float]
    status: list[str]
    cct_s: list[float | None]
    duration_s: list[float | None]
    restabilises: list[bool]


class ScenarioOut(Value):
    """One simulated scenario: angles relative to the centre of inertia."""

    contingency: str
    version: int
    conditions: dict[str, float] = Field(description=POINT)
    alpha: float
    t_c_s: float
    duration_s: float
    stable: bool
    sentence: str
    spare_s: float | None
    cct_s: float | None
    status: str
    separation_rad: float
    max_separation_rad: float
    at_s: float
    t_s: list[float]
    machines: list[int]
    delta_rad: list[list[float]] = Field(description="one list per machine")
    omega_pu: list[list[float]] = Field(description="one list per machine")


class BoundaryOut(Value):
    """A head as a curve."""

    contingency: str
    head: int
    conditions: dict[str, float] = Field(description=POINT)
    alpha: list[float]
    duration_s: list[float]
    slope_s: list[float]
    breaks: list[int]
    censored: list[Interval]
    error_bound_s: float | None = Field(description="over all severities and conditions")
    bound_s: list[float | None] = Field(description="at each severity")
    strict: list[Measurement] = Field(description="where the head was measured; empty for heads over conditions")
    other_duration_s: list[float | None] | None = Field(description="of another head at the same severities")


class RequiredOut(Value):
    """The time that protection needs."""

    contingency: str
    required_s: float
    reason: str
    actor: str
    set_at: datetime


class RequiredIn(BaseModel):
    """A required time to be set."""

    model_config = ConfigDict(extra="forbid")

    required_s: float = Field(gt=0, le=1000)
    reason: str = Field(min_length=1, max_length=2000)


class ReasonIn(BaseModel):
    """Why something is changed."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=2000)
    alias: str = "production"


class DeployIn(ReasonIn):
    """A head to be deployed; default: the newest of the latest version."""

    head: int | None = Field(None, ge=1, le=2**31 - 1)
    force: bool = False
    accept_worse: bool = False


class Answers(Value):
    """Answers for one contingency, in columns; a number that is missing is null and has a reason."""

    contingency: str
    head: int
    checkpoint: int | None
    version: int
    strict_severities: int
    t_f_s: float
    conditions: dict[str, float] = Field(description=POINT)
    alpha: list[float]
    status: list[str]
    cct_s: list[float | None]
    duration_s: list[float | None]
    error_bound_s: list[float | None]
    reason: list[str | None]


class Answering(Value):
    """The head that answered for a contingency."""

    head: int
    checkpoint: int | None
    version: int
    strict_severities: int
    t_f_s: float
    error_bound_s: float | None
    conditions: list[str] = Field(description="names of the conditions that it knows")


class ManyAnswers(Value):
    """Answers for many rows, in columns; a contingency without a head has the status no-head."""

    rows: int
    status: list[str]
    cct_s: list[float | None]
    duration_s: list[float | None]
    error_bound_s: list[float | None]
    head: list[int | None]
    checkpoint: list[int | None]
    version: list[int | None]
    reason: list[str | None]
    answered_by: dict[str, Answering]
    missing: dict[str, str] = Field(description="contingencies that nothing answers for, and why")


class ManyQuestions(BaseModel):
    """Columns of equal length; a single value stands for a column of equal ones.

    Further columns are conditions, as `load` or `generation.2`; null is the case's own value.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "patternProperties": {
                NAME_PATTERN: {
                    "anyOf": [
                        {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
                        {"type": "number"},
                    ]
                }
            }
        },
    )

    contingency: list[str] | str
    alpha: list[float] | float
    alias: str = "production"


class ProblemOut(Value):
    """What went wrong, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str


class Health(Value):
    """Whether the service can do its work."""

    status: Literal["ok", "away"]
    detail: str
