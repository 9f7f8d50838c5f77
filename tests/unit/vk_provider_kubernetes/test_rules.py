"""Every field of the Pod API has exactly one rule."""

from __future__ import annotations

from collections.abc import Iterator

from vk_provider_kubernetes.rules import (
    HOST_ACCESS,
    RULES,
    TABLE,
    Action,
    allowed,
    coverage,
    rule_of,
)
from vk_provider_kubernetes.sent_fields import SENT

from vk_provider.testing.field_samples import SCHEMA


def reachable(type_name: str = "PodSpec", seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every type that the translation goes into."""
    yield type_name
    for rule in TABLE[type_name].values():
        if rule.type and rule.type not in seen:
            yield from reachable(rule.type, seen | {type_name})


def test_every_field_of_the_api_has_a_rule() -> None:
    """A newer API adds fields: each is to be thought about before it is promised."""
    missing = [
        f"{type_name}.{field}"
        for type_name in set(reachable())
        for field in SCHEMA[type_name]
        if rule_of(type_name, field) is None
    ]

    assert missing == []


def test_no_rule_is_for_a_field_that_is_not_there() -> None:
    """A misspelt one would never apply."""
    invented = [
        f"{type_name}.{field}"
        for type_name, rules in TABLE.items()
        for field in rules
        if field not in SCHEMA[type_name]
    ]

    assert invented == []


def test_types_are_those_of_the_schema() -> None:
    """Else the fields inside would be judged by another type's rules."""
    wrong = [
        f"{type_name}.{field}: {rule.type}"
        for type_name, rules in TABLE.items()
        for field, rule in rules.items()
        if rule.type and rule.type != SCHEMA[type_name][field]
    ]

    assert wrong == []


def test_what_is_sent_is_sent_with_its_fields_looked_at() -> None:
    """A structure without a type would let unknown fields through."""
    blind = [
        f"{type_name}.{field}"
        for type_name, rules in TABLE.items()
        for field, rule in rules.items()
        if rule.action is Action.SEND and not rule.type and SCHEMA[type_name][field] in SCHEMA
    ]

    assert blind == []


def test_every_rule_that_does_not_send_says_why() -> None:
    """In words for people."""
    mute = [
        (type_name, field)
        for type_name, rules in TABLE.items()
        for field, rule in rules.items()
        if rule.action is not Action.SEND and not rule.why
    ]

    assert mute == []


def test_no_type_is_never_reached() -> None:
    """It would only look as if it were pinned."""
    assert set(TABLE) == set(reachable())


def test_no_field_stands_in_both_tables() -> None:
    """Nobody could tell which one counts."""
    sent = {(name, word.partition(":")[0]) for name in SENT for word in SENT[name].split()}

    assert not sent & {(name, field) for name in RULES for field in RULES[name]}


def test_the_host_is_out_of_reach_unless_a_switch_is_on() -> None:
    """An operator may allow it."""
    rule = rule_of("PodSpec", "hostNetwork")
    assert rule is not None
    assert rule.action is Action.REJECT
    assert allowed(rule, frozenset({HOST_ACCESS})).action is Action.SEND
    assert allowed(rule, frozenset()) is rule


def test_coverage_names_fields_by_their_path() -> None:
    """For the documentation."""
    found = dict(coverage())

    assert found["spec.volumes.hostPath"].action is Action.REJECT
    assert found["spec.containers.env.valueFrom.fieldRef"].action is Action.RESOLVE
    assert found["spec.containers.livenessProbe.httpGet.port"].action is Action.SEND
    assert found["spec.nodeName"].action is Action.REWRITE
    assert found["spec.affinity"].action is Action.IGNORE
