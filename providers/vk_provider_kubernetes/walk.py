"""Copies a part of a pod field by field, as the table says, and notes what it leaves out.

Pure. Fed by :mod:`.translate` and its parts with JSON and the name of its type; what has a rule of
its own beyond "send" is left out here and added there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.types import FieldNote, Json
from vk_provider_kubernetes.rules import Action, Rule, allowed, rule_of


@dataclass(slots=True)
class Findings:
    """What a translation can't honour, and what it honours otherwise than home would."""

    switches: frozenset[str] = frozenset()
    problems: list[FieldProblem] = field(default_factory=list)
    notes: list[FieldNote] = field(default_factory=list)

    def refuse(self, path: str, why: str) -> None:
        """A field that makes the pod impossible here."""
        self.problems.append(FieldProblem(path, why))

    def note(self, path: str, why: str) -> None:
        """A field that has no effect, or another one."""
        self.notes.append(FieldNote(path, why))


def sent(value: Json, type_name: str, path: str, findings: Findings) -> dict[str, Any]:
    """The fields that go along unchanged, and deep inside them those that do."""
    found: dict[str, Any] = {}
    for name, inside in value.items():
        where = f"{path}.{name}"
        rule = rule_of(type_name, name)
        if rule is None:
            _unknown(inside, where, findings)
            continue
        rule = allowed(rule, findings.switches)
        if rule.action is Action.SEND:
            found[name] = _inside(inside, rule.type, where, findings)
        else:
            _told(inside, rule, where, findings)
    return found


def _unknown(value: Any, path: str, findings: Findings) -> None:
    if not _says_nothing(value):
        findings.refuse(path, "this release does not know the field, so it can't promise it")


def _told(value: Any, rule: Rule, path: str, findings: Findings) -> None:
    if _says_nothing(value) or value in rule.quiet:
        return
    if rule.action is Action.REJECT:
        findings.refuse(path, rule.why)
    elif rule.action is Action.IGNORE:
        findings.note(path, rule.why)


def _inside(value: Any, type_name: str, path: str, findings: Findings) -> Any:
    if type_name and isinstance(value, Mapping):
        return sent(value, type_name, path, findings)
    if type_name and isinstance(value, list | tuple):
        each = enumerate(value)
        return [_inside(item, type_name, f"{path}[{index}]", findings) for index, item in each]
    return value


def _says_nothing(value: Any) -> bool:
    """Absent, false or empty."""
    return value is None or value is False or value in ("", 0) or value == [] or value == {}
