"""Views that change something: signing in and out, deploying, required times. Each answers with a redirect."""

from typing import Annotated
from urllib.parse import parse_qs

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response

from registry.service.api.deploying import replaced_by
from registry.service.api.parts import Deployer, TheService, in_the_name_of
from registry.service.guard import COOKIE
from registry.service.pages.rendering import render
from registry.service.problems import Problem, invalid
from registry.service.ranking import rank
from registry.store import required_times, tokens

router = APIRouter()

MAX_FORM = 20_000  # bytes


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a submitted form."""
    body = await request.body()
    if len(body) > MAX_FORM:
        raise Problem(413, "too-large", "the form is too large.")
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise invalid("the form cannot be read.") from None
    return {name: values[-1] for name, values in fields.items()}


Form = Annotated[dict[str, str], Depends(form_of)]


@router.get("/login")
def show_login(request: Request, next: str = "/") -> Response:
    """Where a token is entered."""
    return render(request, "login.html", next=_local(next), wrong=False, system=None)


@router.post("/login")
async def log_in(request: Request, service: TheService) -> Response:
    """Exchange a token for a session of this browser."""
    form = await form_of(request)
    secret, target = form.get("token", "").strip(), _local(form.get("next", "/"))
    address = request.client.host if request.client else "?"
    token = await to_thread.run_sync(tokens.find, service.home.database, secret) if secret.startswith("cct_") else None
    if token is None:
        wait = service.guard.wait_after_wrong(address)
        if wait:
            raise Problem(
                429, "busy", "too many wrong tokens; wait a little.", {"Retry-After": str(max(1, round(wait)))}
            )
        return render(request, "login.html", 401, next=target, wrong=True, system=None)
    cookie, expires = await to_thread.run_sync(tokens.begin_session, service.home.database, token)
    response = RedirectResponse(target, 303)
    response.set_cookie(
        COOKIE,
        cookie,
        expires=expires,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/logout")
async def log_out(request: Request, service: TheService) -> Response:
    """End the session of this browser."""
    secret = request.cookies.get(COOKIE, "")
    await to_thread.run_sync(tokens.end_session, service.home.database, secret)
    service.guard.forget(secret)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


def _local(target: str) -> str:
    """A path of this service, whatever a link said."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/"


@router.post("/contingencies/{name}/{action}")
def change(
    request: Request,
    service: TheService,
    caller: Deployer,
    name: str,
    action: str,
    form: Form,
) -> Response:
    """Deploy, roll back or retire, with a reason, replacing what the page showed."""
    reason = form.get("reason", "").strip()
    if not reason:
        raise invalid("say why, for the record: the reason is empty.")
    replaces = replaced_by(form.get("replaces"))
    with in_the_name_of(caller):
        if action == "deploy":
            number = form.get("head", "")
            if not (number.isascii() and number.isdigit() and len(number) < 10):
                raise invalid("choose the head to deploy.")
            row = service.home.deploy(name, int(number), reason=reason, replaces=replaces)
        elif action == "rollback":
            row = service.home.rollback(name, reason=reason, replaces=replaces)
        elif action == "retire":
            row = service.home.retire(name, reason=reason, replaces=replaces)
        else:
            raise Problem(404, "not-found", "there is nothing at this address.")
    return RedirectResponse(f"/heads/{row.head_id}", 303)


@router.get("/required")
def show_required(request: Request, service: TheService) -> Response:
    """Required times and the contingencies that do not leave them."""
    ranked = rank(service.registry)
    rows = required_times.required_times(service.home.database)
    by_name = {one.contingency: one for one in ranked}
    return render(
        request, "required.html", alerts=[one for one in ranked if one.alerts], required=rows, ranked=by_name,
        names=sorted(by_name), system=None,
    )  # fmt: skip


@router.post("/required")
def set_required(request: Request, service: TheService, caller: Deployer, form: Form) -> Response:
    """Set a required time, or remove it when the field is empty."""
    name, reason, text = (
        form.get("contingency", "").strip(),
        form.get("reason", "").strip(),
        form.get("required_ms", ""),
    )
    with in_the_name_of(caller):
        if not text.strip():
            required_times.remove_required(service.home.database, name, reason)
        else:
            try:
                seconds = 1e-3 * float(text)
            except ValueError:
                raise invalid(f"{text[:40]!r} is not a number of milliseconds.") from None
            required_times.set_required(service.home.database, name, seconds, reason)
    return RedirectResponse("/required", 303)
