"""Reads one block of configuration field by field and collects everything that is wrong with it.

A wrong field never raises: it becomes a :class:`FieldProblem` with its path, what was found and
what is allowed, and the caller goes on with a safe default, so that a person sees all problems at
once. Values of secrets never appear in a problem.
Fed by parsed YAML or JSON; feeds :mod:`vk_provider.settings` and every provider's ``config.py``::

    problems: list[FieldProblem] = []
    fields = Fields(block, context.config_path, problems)
    cloud = fields.text("cloudType", "SECURE", choices=("SECURE", "COMMUNITY"))
    api_key = fields.secret("apiKey")
    fields.done()
    if problems:
        raise ConfigError(problems)
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from vk_provider.faults import FieldProblem
from vk_provider.secrets import SecretKeyRef, SecretSource

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\[\d+\])?")
_SECRET_KEY = re.compile(r"(?i)key|token|password|passwd|secret|credential")
_WORD = re.compile(r"[A-Za-z]{1,16}")
# Whoever puts a key or a password into an address puts it there.
_TELLING_URL = re.compile(r"://[^/]*@|://.*\?")
_LONGEST_SHOWN = 60
_ENDLESS = 10**60
_LARGEST = sys.float_info.max  # infinities and YAML's whole numbers without end are above it
_HIGHEST = 2**63 - 1
_LONGEST_SECONDS = 10**9  # thirty years: much later no calendar goes, and a deadline is a date
_HOW_TO_GIVE_A_SECRET = (
    "allowed: {file: PATH}, {env: VARIABLE} or {secretKeyRef: {name: NAME, key: KEY}}"
)

_Fallback = TypeVar("_Fallback")


class Required(Enum):
    """The type of :data:`REQUIRED`."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED
"""As a default: the field must be there."""


class MissingSecretProblem(FieldProblem):
    """A secret that must be given is not; ``explain`` needs none and so overlooks this one."""


def join_path(path: str, key: str) -> str:
    """The path of a key below ``path``; keys that are no plain words stand in brackets.

    A key may end in an index of its list: ``backends[0]``.
    """
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def show(value: object) -> str:
    """A found value as a person wrote it, cut where it is long."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, str):
        if _TELLING_URL.search(value):
            return "a URL with a password or a query (not shown)"
        # One problem is one line, and a terminal obeys what it is shown.
        cut = value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}…"
        plain = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
        return f'"{"".join(plain)}"'
    if isinstance(value, int) and abs(value) >= _ENDLESS:
        return "a number without end"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return "a mapping" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that a person most likely meant, or None."""
    by_lower = {entry.lower(): entry for entry in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


class _Level:
    """One mapping of the document: which keys were asked for, and where problems go."""

    def __init__(self, value: object, path: str, problems: list[FieldProblem]) -> None:
        self.path = path
        self.problems = problems
        self._asked: list[str] = []
        self._values: dict[str, Any] = {}
        self._is_secret = _SECRET_KEY.search(path.rpartition(".")[2]) is not None
        if isinstance(value, Mapping):
            self._values = {str(key): entry for key, entry in value.items()}
        elif value is not None:
            # A text may be the secret that should stand somewhere in this mapping.
            is_text = isinstance(value, str) and value
            shown = "a value" if self._is_secret else "a text" if is_text else show(value)
            self.problems.append(FieldProblem(path, f"found {shown}, allowed: a mapping"))

    def at(self, key: str) -> str:
        """The path of one of this level's keys."""
        return join_path(self.path, key)

    def has(self, key: str) -> bool:
        """Whether the key is there with a value; an empty value counts as absent."""
        return self._values.get(key) is not None

    def take(self, key: str) -> Any:
        """The raw value of a key, None if absent; the key is a valid one from now on."""
        if key not in self._asked:
            self._asked.append(key)
        return self._values.get(key)

    def raw(self) -> Mapping[str, Any]:
        """The whole mapping as it is, for whoever owns its keys (a provider's block)."""
        return self._values

    def refuse(self, key: str, message: str) -> None:
        """Report a problem with one of this level's keys."""
        self.problems.append(FieldProblem(self.at(key), message))

    def wrong(self, key: str, value: object, allowed: str) -> None:
        """Report what was found at a key and what is allowed there."""
        is_secret = self._is_secret or _SECRET_KEY.search(key)
        shown = "a value (not shown)" if is_secret else show(value)
        self.refuse(key, f"found {shown}, allowed: {allowed}")

    def done(self) -> None:
        """Report every key that nobody asked for, with the valid key nearest to it."""
        for key in self._values:
            if key in self._asked:
                continue
            near = nearest(key, self._asked)
            valid = f"valid: {', '.join(sorted(self._asked))}"
            if self._is_secret and not _WORD.fullmatch(key):
                self.problems.append(FieldProblem(self.path, f"unknown key (not shown); {valid}"))
                continue
            self.refuse(
                key, f'unknown key; did you mean "{near}"?' if near else f"unknown key; {valid}"
            )


class Fields(_Level):
    """The typed view of one mapping. Every method returns a safe value, whatever was found."""

    def text(
        self,
        key: str,
        default: str | Required = REQUIRED,
        *,
        choices: Sequence[str] | None = None,
        pattern: str | None = None,
        allowed: str | None = None,
    ) -> str:
        """A text, one of ``choices`` or fully matching ``pattern`` (described by ``allowed``)."""
        value = self.take(key)
        if value is None:
            if default is not REQUIRED:
                return default
            words = allowed or (", ".join(choices) if choices else "a text")
            self.refuse(key, f"missing, must be given; allowed: {words}")
        elif not isinstance(value, str):
            self.wrong(key, value, f"{allowed or 'a text'} (put it in quotes)")
        elif choices is not None and value not in choices:
            self.wrong(key, value, ", ".join(choices))
        elif pattern is not None and not re.fullmatch(pattern, value):
            self.wrong(key, value, allowed or f"text that matches {pattern}")
        else:
            return value
        return "" if default is REQUIRED else default

    def optional_text(
        self,
        key: str,
        *,
        choices: Sequence[str] | None = None,
        pattern: str | None = None,
        allowed: str | None = None,
    ) -> str | None:
        """A text, or None where there is none."""
        if self.take(key) is None:
            return None
        return self.text(key, "", choices=choices, pattern=pattern, allowed=allowed) or None

    def integer(
        self,
        key: str,
        default: _Fallback,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> int | _Fallback:
        """A whole number within the bounds; ``default`` may be None."""
        value = self.take(key)
        if value is None:
            return default
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and abs(value) <= _HIGHEST
            and _within(value, minimum, maximum)
        ):
            return value
        self.wrong(key, value, f"a whole number{_bounds(minimum, maximum)}")
        return default

    def number(
        self,
        key: str,
        default: _Fallback,
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> float | _Fallback:
        """A number within the bounds; ``default`` may be None. Seconds are always bounded."""
        value = self.take(key)
        if maximum is None and key.endswith("Seconds"):
            maximum = _LONGEST_SECONDS
        if value is None:
            return default
        if _is_number(value) and abs(value) <= _LARGEST and _within(value, minimum, maximum):
            return float(value)
        self.wrong(key, value, f"a number{_bounds(minimum, maximum)}")
        return default

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        self.wrong(key, value, "true, false")
        return default

    def texts(
        self, key: str, default: Sequence[str] = (), *, choices: Sequence[str] | None = None
    ) -> tuple[str, ...]:
        """A list of texts, each one of ``choices`` if given. An empty list stays empty."""
        value = self.take(key)
        if value is None:
            return tuple(default)
        if not isinstance(value, list | tuple):
            self.wrong(key, value, "a list of texts")
            return tuple(default)
        kept = []
        for index, entry in enumerate(value):
            if not isinstance(entry, str):
                self.wrong(f"{key}[{index}]", entry, "a text (put it in quotes)")
            elif choices is not None and entry not in choices:
                self.wrong(f"{key}[{index}]", entry, ", ".join(choices))
            else:
                kept.append(entry)
        return tuple(kept)

    def mapping(self, key: str, *, numbers: bool = False) -> Mapping[str, str]:
        """A mapping of texts to texts; with ``numbers`` a plain number is taken as its text."""
        level = _Level(self.take(key), self.at(key), self.problems)
        kept: dict[str, str] = {}
        for name, value in level.raw().items():
            if isinstance(value, str):
                kept[name] = value
            elif numbers and _is_number(value):
                kept[name] = str(value)
            else:
                level.wrong(name, value, "a text (put it in quotes)")
        return kept

    def child(self, key: str) -> Fields:
        """The mapping below a key, empty if absent. The caller ends it with ``done()``."""
        return Fields(self.take(key), self.at(key), self.problems)

    def children(self, key: str) -> list[Fields]:
        """The list of mappings below a key, empty if absent."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self.wrong(key, value, "a list of mappings")
            return []
        # An empty entry is a mistake, while an empty block is an absent one.
        return [
            Fields("" if entry is None else entry, f"{self.at(key)}[{index}]", self.problems)
            for index, entry in enumerate(value)
        ]

    def secret(self, key: str, required: bool = True) -> SecretSource | None:
        """Where a secret lies. A secret that stands in the configuration itself is refused."""
        value = self.take(key)
        if value is None:
            if required:
                message = f"missing, must be given; {_HOW_TO_GIVE_A_SECRET}"
                self.problems.append(MissingSecretProblem(self.at(key), message))
            return None
        if not isinstance(value, Mapping):
            message = f"a secret can't stand in the configuration itself; {_HOW_TO_GIVE_A_SECRET}"
            self.refuse(key, message)
            return None
        return _secret_source(Fields(value, self.at(key), self.problems))


def _secret_source(block: Fields) -> SecretSource | None:
    before = len(block.problems)
    file = block.optional_text("file")
    env = block.optional_text("env", pattern=r"[A-Za-z_][A-Za-z0-9_]*", allowed="a variable's name")
    reference = block.child("secretKeyRef") if block.has("secretKeyRef") else None
    block.take("secretKeyRef")
    ref = None
    if reference is not None:
        namespace = reference.optional_text("namespace")
        ref = SecretKeyRef(reference.text("name"), reference.text("key"), namespace)
        reference.done()
    block.done()
    if len(block.problems) > before:
        return None
    if sum(entry is not None for entry in (file, env, ref)) != 1:
        message = f"exactly one source must be given; {_HOW_TO_GIVE_A_SECRET}"
        block.problems.append(FieldProblem(block.path, message))
        return None
    return SecretSource(file=file, env=env, secret_key_ref=ref)


def _is_number(value: object) -> bool:
    # YAML's true and false are Python's 1 and 0, which nobody means as a number.
    return isinstance(value, int | float) and not isinstance(value, bool)


def _within(value: float, minimum: float | None, maximum: float | None) -> bool:
    return (minimum is None or value >= minimum) and (maximum is None or value <= maximum)


def _bounds(minimum: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}"
    if minimum is not None:
        return f" of at least {minimum}"
    return "" if maximum is None else f" of at most {maximum}"
