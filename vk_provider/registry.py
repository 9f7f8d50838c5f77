"""Finds installed providers and simulators by name and builds them from their configuration.

Fed by the entry points of whatever is installed, ours and anybody's; feeds
:mod:`vk_provider.settings_file`, ``explain`` and the app. Whatever foreign code does wrong here is
a ``ConfigError`` that names the entry point, since a person has to change what is installed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, cast

from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import nearest
from vk_provider.provider import Provider, ProviderContext, ProviderFactory
from vk_provider.settings import BackendSettings

PROVIDERS = "vk_provider.providers"
SIMULATORS = "vk_provider.simulators"
_TEST_KIT = "vk_provider.testing."


class Simulator(Protocol):
    """What an entry point of group ``vk_provider.simulators`` names; a module will do."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the simulator's flags."""

    async def serve(self, arguments: argparse.Namespace) -> None:
        """Serve until SIGINT or SIGTERM."""


def installed(group: str = PROVIDERS) -> tuple[str, ...]:
    """The names of what is installed, sorted."""
    return tuple(sorted(entry_points(group=group).names))


def installed_backends() -> tuple[str, ...]:
    """Installed providers that run something: the test kit's promises nothing about any pod."""
    kit = {e.name for e in entry_points(group=PROVIDERS) if e.value.startswith(_TEST_KIT)}
    return tuple(name for name in installed() if name not in kit)


def load(name: str) -> ProviderFactory:
    """The factory of a provider. Raises ``ConfigError``."""
    return cast(ProviderFactory, _load(PROVIDERS, name))


def load_simulator(name: str) -> Simulator:
    """The simulator of a provider. Raises ``ConfigError``."""
    return cast(Simulator, _load(SIMULATORS, name))


def create(backend: BackendSettings, context: ProviderContext) -> Provider:
    """A provider, not yet entered: no I/O happens. Raises ``ConfigError`` with all problems."""
    try:
        factory = load(backend.provider)
    except ConfigError as error:
        if not backend.path:
            raise
        path = f"{backend.path}.provider"
        raise ConfigError([FieldProblem(path, str(each)) for each in error.problems]) from error
    with foreign_code(backend.provider, "failed on its configuration"):
        return factory(backend.config, context)


def _load(group: str, name: str) -> Any:
    entry = _entry(group, name)
    with _guard(lambda: entry, "can't be loaded"):
        return entry.load()


def _entry(group: str, name: str) -> EntryPoint:
    found = list(entry_points(group=group, name=name))
    if len({entry.value for entry in found}) == 1:
        return found[0]
    noun = group.rpartition(".")[2].removesuffix("s")
    if found:
        raise ConfigError(
            [f'{noun} "{name}" is installed twice: {"; ".join(_words(entry) for entry in found)}']
        )
    names = installed(group)
    near = nearest(name, names)
    hint = f'; did you mean "{near}"?' if near else ""
    listed = ", ".join(names) or "none"
    raise ConfigError([f'no {noun} "{name}" is installed (installed: {listed}){hint}'])


def _words(entry: EntryPoint) -> str:
    noun = entry.group.rpartition(".")[2].removesuffix("s")
    package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
    return f'{noun} "{entry.name}" (entry point {entry.value}{package})'


def foreign_code(provider: str, what: str) -> AbstractContextManager[None]:
    """Turns whatever a provider raises in here into a ``ConfigError`` that names it."""
    # Which one it is takes a look through all that is installed: only a mistake is worth that.
    return _guard(lambda: _entry(PROVIDERS, provider), what)


@contextmanager
def _guard(entry: Callable[[], EntryPoint], what: str) -> Iterator[None]:
    """Turns whatever foreign code raises into one sentence."""
    try:
        yield
    except ConfigError:
        raise
    except ModuleNotFoundError as error:
        extra = _extra_with(entry(), error.name or "")
        install = f"; install it: pip install '{extra}'" if extra else ""
        message = f"{_words(entry())} {what}: module {error.name} is missing{install}"
        raise ConfigError([message]) from error
    except Exception as error:  # A plugin may raise anything, and none may stop us.
        message = f"{_words(entry())} {what}: {type(error).__name__}: {error}"
        raise ConfigError([message]) from error


def _extra_with(entry: EntryPoint, module: str) -> str | None:
    """``distribution[extra]`` that brings a missing module: an extra named like the provider, or
    one that asks for a distribution named like the module."""
    if entry.dist is None:
        return None
    top = re.escape(module.partition(".")[0].replace("_", "-"))
    for extra in entry.dist.metadata.get_all("Provides-Extra") or []:
        asks = re.compile(rf"(?i){top}\b.*extra\s*==\s*['\"]{re.escape(extra)}['\"]")
        if extra == entry.name or any(asks.match(line) for line in entry.dist.requires or []):
            return f"{entry.dist.name}[{extra}]"
    return None
