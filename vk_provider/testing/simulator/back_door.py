"""The back door, ``/_sim``: script faults, move the clock, read the bill, and a simulator's own.

JSON in camelCase, without authentication: it belongs on loopback. A wrong request is a 400 with a
sentence. Fed by tests, demos and people with curl; changes a simulator's ``faults``, ``model`` and
``clock``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol, TypeVar

from aiohttp import web

from vk_provider.testing.simulator.account import RefusalError, Rule
from vk_provider.testing.simulator.clock import rfc3339
from vk_provider.testing.simulator.faults import UnknownKindError
from vk_provider.testing.simulator.ledger import Owner
from vk_provider.testing.simulator.orders import BadRequestError, camel_word, keys, read_order
from vk_provider.testing.simulator.state import SimulatorState

State = SimulatorState[Any, Any, Any]
Order = Callable[[Any, web.Request, Mapping[str, Any]], Any]
"""Of a state, a request and its body; the first line of its docstring is its line at ``/_sim``.
FAULT and BEHAVIOUR in there are the keys that the simulator's have."""
Route = tuple[str, str, Order]
_TOLD = ("id", "fired")
"""Keys of a fault that are answered, not asked for."""


class _Instance(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def owner(self) -> Owner: ...


T = TypeVar("T", bound=_Instance)


def add_routes(
    app: web.Application,
    state: State,
    own: Sequence[Route],
    after: Callable[[], None] | None = None,
) -> None:
    """Hang the back door into an application: the orders below, and the simulator's ``own``.

    ``after`` is done after every order that was carried out.
    """
    routes = (*own, *ROUTES)
    for method, path, order in routes:
        app.router.add_route(method, f"/_sim{path}", _served(state, order, after))
    for path in ("/", "/_sim"):
        app.router.add_get(path, _index(state, routes))


def _index(
    state: State, routes: Iterable[Route]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """What there is to ask, from the first lines of what answers."""
    firsts = ((order.__doc__ or "").partition("\n")[0] for *_, order in routes)
    text = "\n".join(("The back door of the simulator:", "", *dict.fromkeys(firsts), ""))
    for word, kind in {"FAULT": state.faults.make, "BEHAVIOUR": type(state.model.default)}.items():
        text = text.replace(word, ", ".join(keys(kind, _TOLD)))
    text = text.replace("``", "")

    async def serve(_: web.Request) -> web.Response:
        return web.Response(text=text)

    return serve


def _served(
    state: State, order: Order, after: Callable[[], None] | None
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(request: web.Request) -> web.Response:
        try:
            text = await request.text()
            body = json.loads(text) if text else {}
            if not isinstance(body, dict):
                raise BadRequestError("the body must be a JSON object")
            answer = camel(order(state, request, body))
            if after is not None:
                after()
            return web.json_response(answer)
        except (ValueError, KeyError, TypeError) as error:
            return web.json_response({"error": str(error)}, status=400)
        except RefusalError as refusal:
            return web.json_response({"error": refusal.detail}, status=refusal.http_status)

    return serve


def camel(value: Any) -> Any:
    """The way back: every key of an answer in camelCase."""
    if isinstance(value, Mapping):
        return {camel_word(key): camel(entry) for key, entry in value.items()}
    return [camel(entry) for entry in value] if isinstance(value, list | tuple) else value


def find(living: Iterable[T], key: str, noun: str) -> T:
    """The instance of this id or Kubernetes pod UID. Raises :class:`RefusalError`."""
    for instance in living:
        if key in (instance.id, instance.owner.pod_uid):
            return instance
    raise RefusalError(f"no living {noun} has the id or the Kubernetes UID {key!r}")


def add_fault(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/faults`` ``{FAULT, seed}``."""
    settings = read_order(body, state.faults.make, ["seed"], _TOLD)
    kind = settings.pop("kind", None)
    if kind is None:
        known = ", ".join(sorted(state.faults.kinds))
        raise UnknownKindError(f"kind is missing; known: {known}")
    return asdict(state.faults.add(str(kind), **settings))


def list_faults(state: State, *_: Any) -> Any:
    """``GET /_sim/faults``: what is scripted and how often it fired, and every kind there is."""
    script = [asdict(fault) for fault in state.faults.script]
    return {"faults": script, "kinds": dict(state.faults.kinds)}


def remove_faults(state: State, request: web.Request, _: Mapping[str, Any]) -> Any:
    """``DELETE /_sim/faults`` or ``/_sim/faults/{id}``."""
    state.faults.remove(request.match_info.get("id"))
    return list_faults(state)


def add_behaviour(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/behaviours`` ``{match, BEHAVIOUR}``.

    An empty ``match`` is the default for all instances made from now on; the newest rule wins.
    """
    settings = read_order(body, type(state.model.default), ["match"])
    match = str(settings.pop("match", ""))
    behaviour = replace(state.model.default, **settings)
    if match:
        state.model.rules.insert(0, Rule(match, behaviour))
    else:
        state.model.default = behaviour
    return asdict(behaviour)


def clear_behaviours(state: State, *_: Any) -> Any:
    """``DELETE /_sim/behaviours``."""
    state.model.rules.clear()
    return {}


def advance(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/clock/advance`` ``{seconds}``."""
    state.clock.advance(float(body["seconds"]))
    return show_clock(state)


def show_clock(state: State, *_: Any) -> Any:
    """``GET /_sim/clock``; time passes by itself at ``speed``."""
    now = state.clock.now()
    return {"now": now, "text": rfc3339(now), "speed": state.clock.speed}


def show_ledger(state: State, *_: Any) -> Any:
    """``GET /_sim/ledger``: every charge, the open ones, and pods billed twice at once."""
    now = state.clock.now()
    state.model.settle(now)
    return state.model.ledger.report(now)


def show_requests(state: State, request: web.Request, _: Mapping[str, Any]) -> Any:
    """``GET /_sim/requests?after=N``: every call, when it came and whether it was answered."""
    after = int(request.query.get("after", "-1"))
    return {"requests": [asdict(each) for each in state.requests if each.number > after]}


ROUTES: tuple[Route, ...] = (
    ("POST", "/faults", add_fault),
    ("GET", "/faults", list_faults),
    ("DELETE", "/faults", remove_faults),
    ("DELETE", "/faults/{id}", remove_faults),
    ("POST", "/behaviours", add_behaviour),
    ("DELETE", "/behaviours", clear_behaviours),
    ("POST", "/clock/advance", advance),
    ("GET", "/clock", show_clock),
    ("GET", "/ledger", show_ledger),
    ("GET", "/requests", show_requests),
)
"""What every simulator can be told; it adds its instances, its stock and whatever it has."""
