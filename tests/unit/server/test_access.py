"""A kubelet's table of verbs and subresources, and callers by certificate."""

import pytest

from vk_provider.server.access import (
    Identity,
    certificate_identity,
    forbidden_text,
    verb_and_subresources,
    with_authenticated,
)


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/stats/summary", "get", ("stats",)),
        ("POST", "/stats/summary", "create", ("stats",)),
        ("GET", "/metrics", "get", ("metrics",)),
        ("GET", "/metrics/resource", "get", ("metrics",)),
        ("GET", "/logs/{path}", "get", ("log",)),
        ("POST", "/checkpoint/a/b/c", "create", ("checkpoint",)),
        ("GET", "/statusz", "get", ("statusz",)),
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("GET", "/healthz/ping", "get", ("healthz", "proxy")),
        ("GET", "/configz", "get", ("configz", "proxy")),
        ("GET", "/flagz", "get", ("configz",)),
        ("GET", "/containerLogs/a/b/c", "get", ("proxy",)),
        ("PUT", "/debug/flags/v", "update", ("proxy",)),
        ("OPTIONS", "/podsy", "options", ("proxy",)),
    ],
)
def test_the_table(method: str, path: str, verb: str, subresources: tuple[str, ...]) -> None:
    """Each row as the kubelet has it."""
    assert verb_and_subresources(method, path) == (verb, subresources)


@pytest.mark.parametrize("path", ["/exec/a/b/c", "/attach/a/b/c", "/portForward/a/b", "/run/a/b/c"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_streams_need_create(method: str, path: str) -> None:
    """Whoever may only read must not run commands, over WebSocket either."""
    assert verb_and_subresources(method, path) == ("create", ("proxy",))


def certificate(*subject: tuple[str, str]) -> dict[str, object]:
    rdns = tuple((pair,) for pair in subject)
    return {"subject": rdns, "notAfter": "Jan  1 00:00:00 2030 GMT"}


def test_a_certificate_names_user_and_groups() -> None:
    """CN and every O."""
    found = certificate_identity(
        certificate(("organizationName", "a"), ("organizationName", "b"), ("commonName", "me")), 0.0
    )
    assert found == Identity("me", ("a", "b", "system:authenticated"))


@pytest.mark.parametrize("shown", [None, {}, certificate(("organizationName", "a"))])
def test_nobody_without_a_name(shown: dict[str, object] | None) -> None:
    """No certificate, or one without a CN."""
    assert certificate_identity(shown, 0.0) is None


def test_nobody_after_the_end() -> None:
    """A connection may outlive its certificate; its rights may not."""
    assert certificate_identity(certificate(("commonName", "me")), 4e9) is None


def test_the_group_of_all_is_added_once() -> None:
    """The API server may have said it already."""
    assert with_authenticated(["system:authenticated"]) == ("system:authenticated",)


def test_a_refusal_names_user_verb_resource() -> None:
    """So that an administrator can grant it."""
    text = forbidden_text(Identity("me"), "get", ("pods", "proxy"))
    assert text == "Forbidden (user=me, verb=get, resource=nodes, subresource(s)=pods, proxy)"
