"""What becomes of every field of a pod at a provider, found out by asking it, one field at a time.

For each field two pods are explained that differ in it alone. The answers tell: the request
differs, a note or a refusal names it, or nothing happens, which is right only for the fields in
:mod:`vk_provider.pods.home_fields` and for those that a provider's author has a reason for. ::

    for found in probe(provider):
        assert found.fate is not Fate.SILENT or found.path in REASONS, found.path

Fed by a provider that need not be entered; feeds its tests and the tables of the documentation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vk_provider.faults import FieldProblem, UnsupportedFieldsError
from vk_provider.pods.home_fields import HOME_FIELDS
from vk_provider.pods.types import IMPLICIT_OFFER, FieldNote, Json
from vk_provider.provider import Offer, Provider, SupportsKnownOffers
from vk_provider.testing.builders import make_resolved_pod
from vk_provider.testing.field_samples import (
    BESIDE,
    LISTS,
    OBJECTS,
    POD,
    RESOLVED,
    SAMPLES,
    SCHEMA,
    WORD,
)

_REFERENCES = (
    "EnvVarSource", "EnvFromSource", "EnvSource", "Reference", "Selector", "Projection",
)  # fmt: skip
_Put = Callable[[Any], dict[str, Any]]
"""Puts a value into an otherwise plain pod: what it gives is the pod's spec."""


class Fate(StrEnum):
    """What becomes of a field."""

    SENT = "sent"
    REWRITTEN = "rewritten"
    """It changes the request, in other words than its own."""
    RESOLVED = "resolved"
    """What it refers to is sent."""
    IGNORED = "ignored"
    """It has no effect, and a note says so."""
    REFUSED = "refused"
    HOME = "home"
    """It needs no backend: home or the core has acted on it."""
    SILENT = "silent"
    """Nothing tells what became of it."""


@dataclass(frozen=True, slots=True)
class Found:
    """One field by its path, without indexes, with the provider's own words about it."""

    path: str
    fate: Fate
    why: str = ""


def probe(provider: Provider) -> list[Found]:
    """Every field of a pod that this provider looks into, in the API's order.

    A field whose fate is that of all that is inside it stands alone.
    """
    return list(_Probe(provider).walk("PodSpec", "spec", lambda fields: {**POD, **fields}))


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a provider says to one pod. ``waits`` instead: something it must have is absent."""

    leaves: Counter[str] = field(default_factory=Counter)
    problems: frozenset[FieldProblem] = frozenset()
    notes: frozenset[FieldNote] = frozenset()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class _Probe:
    """One provider under questions."""

    provider: Provider

    def walk(self, type_name: str, path: str, put: _Put) -> Iterator[Found]:
        """The fields of a type, each with what is inside it."""
        for name, inside in SCHEMA[type_name].items():
            key, where = f"{type_name}.{name}", f"{path}.{name}"
            beside = BESIDE.get(key, BESIDE.get(type_name, {}))
            deeper = _within(key, beside, put)
            found = None if inside in SCHEMA and name in beside else self._field(key, where, put)
            if found is None or (inside in SCHEMA and not found.is_whole):
                yield from _merged(where, list(self.walk(inside, where, deeper)))
            else:
                yield Found(where, found.fate, found.why)

    def _field(self, key: str, path: str, put: _Put) -> _Judgement:
        type_name, _, name = key.partition(".")
        beside = BESIDE.get(key, BESIDE.get(type_name, {}))
        found = _judged(
            self._answer(put(beside)), self._answer(put({**beside, name: _sample(key)})), key, path
        )
        reason = HOME_FIELDS.get(type_name, {}).get(name)
        if found.fate is Fate.SILENT and reason:
            return _Judgement(Fate.HOME, reason, is_whole=True)
        return found

    def _answer(self, spec: dict[str, Any]) -> _Answer:
        try:
            pod = make_resolved_pod("probe", objects=OBJECTS, **spec)
        except LookupError:
            return _Answer(waits=True)
        try:
            explained = self.provider.explain(pod, self._offer())
        except UnsupportedFieldsError as error:
            return _Answer(problems=frozenset(error.problems))
        return _Answer(Counter(_words(explained.request)), notes=frozenset(explained.notes))

    def _offer(self) -> Offer:
        if isinstance(self.provider, SupportsKnownOffers):
            return self.provider.known_offers(0)[0]
        return IMPLICIT_OFFER


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What became of a field. ``is_whole``: of all that is inside it alike."""

    fate: Fate
    why: str = ""
    is_whole: bool = False


def _judged(without: _Answer, answer: _Answer, key: str, path: str) -> _Judgement:
    said = answer.problems - without.problems or answer.problems
    if said:
        # What stands beside it may be refused already: then nothing of it gets anywhere either.
        return _named(Fate.REFUSED, {each.path: each.message for each in said}, path)
    if answer.waits != without.waits:
        return _Judgement(Fate.RESOLVED)
    notes = {each.path: each.note for each in answer.notes - without.notes}
    new, gone = answer.leaves - without.leaves, without.leaves - answer.leaves
    if not new and not gone:
        return _named(Fate.IGNORED, notes, path) if notes else _Judgement(Fate.SILENT)
    about = [words for where, words in notes.items() if _plain(where).startswith(path)]
    return _Judgement(_way(new, key), "; ".join(dict.fromkeys(about)))


def _named(fate: Fate, said: Mapping[str, str], path: str) -> _Judgement:
    plain = {_plain(where): words for where, words in sorted(said.items())}
    is_inside = all(where.startswith(f"{path}.") for where in plain)
    return _Judgement(fate, next(iter(plain.values())), is_whole=not is_inside)


def _plain(path: str) -> str:
    """A field path without indexes."""
    return re.sub(r"\[\w*\]", "", path)


def _way(new: Counter[str], key: str) -> Fate:
    wanted = [word for word in _words(_sample(key), with_keys=False) if word != RESOLVED]
    if wanted and all(any(_says(text, word) for text in new) for word in wanted):
        return Fate.SENT
    is_reference = key.partition(".")[0].endswith(_REFERENCES)
    looked_up = is_reference or any(RESOLVED in text for text in new)
    return Fate.RESOLVED if looked_up else Fate.REWRITTEN


def _says(text: str, word: str) -> bool:
    """Whether a word stands in a text; a number only where it is all of it."""
    return word == text or (not word.isdecimal() and word in text)


def _sample(key: str) -> Any:
    if key in SAMPLES:
        return SAMPLES[key]
    type_name, _, name = key.partition(".")
    inside = SCHEMA[type_name][name]
    if name in ("optional", "readOnly"):
        return True
    if inside not in SCHEMA:
        return WORD
    value = dict(BESIDE.get(inside, {})) or _first_of(inside)
    return [value] if key in LISTS else value


def _first_of(type_name: str) -> dict[str, Any]:
    """An object with one field in it, the first of its type."""
    name = next(iter(SCHEMA[type_name]))
    return {name: _sample(f"{type_name}.{name}")}


def _within(key: str, beside: Json, put: _Put) -> _Put:
    """Puts an object at a field of another one."""
    _, _, name = key.partition(".")

    def put_inside(value: Any) -> dict[str, Any]:
        return put({**beside, name: [value] if key in LISTS else value})

    return put_inside


def _words(value: Any, *, with_keys: bool = True) -> Iterator[str]:
    """Every key and value of a document as text."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if with_keys:
                yield name
            yield from _words(each, with_keys=with_keys)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _words(each, with_keys=with_keys)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def _merged(path: str, inner: list[Found]) -> list[Found]:
    """One line where all that is inside fares alike."""
    first = inner[0]
    if all((each.fate, each.why) == (first.fate, first.why) for each in inner):
        return [Found(path, first.fate, first.why)]
    return inner
