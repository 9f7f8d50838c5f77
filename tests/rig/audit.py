"""The API server's audit log: who asked for what, how often, and what was refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Event = dict[str, Any]

# Probes of a server's health say nothing about the node under test. Of a long-running request
# (a watch) both its start and its end are logged, under one audit id.
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]
- level: Metadata
"""

_FORBIDDEN = 403


def parse(text: str) -> list[Event]:
    """Return one event per request, in the order of their first lines.

    Of several stages of a request the last wins. A last line still being written is left out.
    """
    requests: dict[str, Event] = {}
    for line in text.splitlines(keepends=True):
        if line.endswith("\n") and line.strip():
            event: Event = json.loads(line)
            requests[event["auditID"]] = event
    return list(requests.values())


def read(path: Path, offset: int = 0) -> list[Event]:
    """Return the requests logged in a file from a byte offset on."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(offset)
        return parse(file.read().decode())


def user_of(event: Mapping[str, Any]) -> str:
    """Return the name of the user who sent a request."""
    return str(event.get("user", {}).get("username", ""))


def resource_of(event: Mapping[str, Any]) -> str:
    """Return `pods` or, with a subresource, `pods/status`; the path where there is no resource."""
    reference = event.get("objectRef")
    if not reference or not reference.get("resource"):
        return str(event["requestURI"]).partition("?")[0]
    subresource = reference.get("subresource")
    return f"{reference['resource']}/{subresource}" if subresource else str(reference["resource"])


def select(
    events: Iterable[Event],
    *,
    user: str | None = None,
    verb: str | None = None,
    resource: str | None = None,
    **reference: str,
) -> list[Event]:
    """Return the events that match; `resource` is `pods` or `pods/status`, never both at once.

    Further keywords are fields of the object: `namespace="a"`, `name="b"`, `apiGroup="apps"`.
    """
    return [
        event
        for event in events
        if (user is None or user_of(event) == user)
        and (verb is None or event["verb"] == verb)
        and (resource is None or resource_of(event) == resource)
        and all(event.get("objectRef", {}).get(k) == v for k, v in reference.items())
    ]


def requests_of(events: Iterable[Event], user: str) -> Counter[tuple[str, str]]:
    """Count a user's requests by (verb, resource), e.g. `("patch", "pods/status")`."""
    return Counter((event["verb"], resource_of(event)) for event in select(events, user=user))


def count(events: Iterable[Event], **criteria: str) -> int:
    """Count the events that `select` would return."""
    return len(select(events, **criteria))


def forbidden(events: Iterable[Event], user: str | None = None) -> list[Event]:
    """Return the requests that were answered 403: a hole in somebody's RBAC."""
    return [
        event
        for event in select(events, user=user)
        if event.get("responseStatus", {}).get("code") == _FORBIDDEN
    ]


def describe(events: Iterable[Event]) -> str:
    """Return one line per event, for assertion messages."""
    return "\n".join(
        f"{user_of(event)} {event['verb']} {event['requestURI']}"
        f" -> {event.get('responseStatus', {}).get('code')}"
        for event in events
    )
