"""The backends that ``explain`` asks: those of a configuration, or every provider's defaults.

Fed by the configuration or by what is installed; feeds :mod:`.explain`.
Providers are built and not entered, so nothing here needs an account or a network, unless somebody
asks for the catalogues as they are now (:func:`with_live_offers`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vk_provider import __version__
from vk_provider.faults import ConfigError, FieldProblem, ProviderError
from vk_provider.fields import MissingSecretProblem
from vk_provider.node.object import NodeSpec, node_labels
from vk_provider.offline.explain import AskedBackend
from vk_provider.pods.admission import AdmittingNode
from vk_provider.pods.types import Json
from vk_provider.provider import Offer, Provider, ProviderContext, SupportsOffers
from vk_provider.registry import create, foreign_code, installed_backends
from vk_provider.settings import PROVIDER_TAINT, BackendSettings, NodeSettings
from vk_provider.settings_file import USER_AGENT, provider_context
from vk_provider.taints import Taint

_NODE = "virtual-node"
_CONFIG_PATH = "config"
ONLINE_SECONDS = 30.0
"""How long one backend may take to tell all of its offers."""


def configured(nodes: Sequence[NodeSettings]) -> tuple[AskedBackend, ...]:
    """Every backend of every node."""
    return tuple(candidate for node in nodes for candidate in _of_node(node))


def _of_node(node: NodeSettings) -> Iterator[AskedBackend]:
    view = AdmittingNode(
        name=node.name,
        labels=_labels(node),
        permanent_taints=tuple(_json(taint) for taint in node.taints),
        capacity=node.capacity,
    )
    for backend in node.backends:
        yield AskedBackend(
            name=backend.name,
            provider_name=backend.provider,
            node=view,
            provider=create(backend, provider_context(node, backend)),
            policy=node.placement.policy,
            budget=node.placement.budget,
        )


async def with_live_offers(
    candidates: Sequence[AskedBackend], gpu_counts: Collection[int]
) -> tuple[AskedBackend, ...]:
    """The candidates with what their backends offer now for so many GPUs, at their prices.

    Backends are asked side by side, as their configuration says. Why one could not be asked is one
    of its problems."""
    return tuple(await asyncio.gather(*(_asked(each, gpu_counts) for each in candidates)))


async def _asked(candidate: AskedBackend, gpu_counts: Collection[int]) -> AskedBackend:
    provider = candidate.provider
    if provider is None or not isinstance(provider, SupportsOffers):
        return candidate
    try:
        with foreign_code(candidate.provider_name, "failed to tell its offers"):
            return replace(candidate, live=await _live(provider, gpu_counts))
    except ConfigError as error:
        return replace(candidate, problems=(*candidate.problems, str(error)))


async def _live(provider: Provider, gpu_counts: Collection[int]) -> Mapping[int, Sequence[Offer]]:
    assert isinstance(provider, SupportsOffers)
    try:
        async with asyncio.timeout(ONLINE_SECONDS), provider:
            return {count: tuple(await provider.list_offers(count)) for count in gpu_counts}
    except (ProviderError, TimeoutError) as fault:
        why = str(fault) or f"no answer within {ONLINE_SECONDS:g} s"
        raise ConfigError([f"its catalogue can't be asked: {why}"]) from fault


def with_defaults() -> tuple[AskedBackend, ...]:
    """Every installed provider as an empty configuration makes it."""
    return tuple(_with_defaults(name) for name in installed_backends())


def _with_defaults(name: str) -> AskedBackend:
    view = AdmittingNode(name=_NODE, permanent_taints=(_json(PROVIDER_TAINT),))
    context = ProviderContext("", _NODE, name, _CONFIG_PATH, USER_AGENT)
    try:
        try:
            provider = create(BackendSettings(name, name), context)
        except ConfigError as error:
            # Whoever explains needs no account, so a secret that must be given is never read.
            config = _unset_secrets(error.problems)
            provider = create(BackendSettings(name, name, config), context)
    except ConfigError as error:
        # A sentence is about what is installed, a field about what has no default.
        problems = tuple(
            f"needs --config: {each}" if isinstance(each, FieldProblem) else each
            for each in error.problems
        )
        return AskedBackend(name, name, view, None, problems)
    return AskedBackend(name, name, view, provider)


def _unset_secrets(problems: Iterable[FieldProblem | str]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for problem in problems:
        if isinstance(problem, MissingSecretProblem):
            *blocks, key = problem.path.removeprefix(f"{_CONFIG_PATH}.").split(".")
            level = config
            for block in blocks:
                level = level.setdefault(block, {})
            level[key] = {"env": "UNSET"}
    return config


def _labels(node: NodeSettings) -> dict[str, str]:
    return node_labels(NodeSpec(node.name, node.capacity, __version__, labels=node.labels))


def _json(taint: Taint) -> Json:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}
