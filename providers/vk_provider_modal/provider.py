"""Modal behind the seam: each method is one translation and one errand at the workspace.

Fed by the core; rests on ``translate``, ``offers`` (pure), ``survey`` and ``workspace`` (I/O).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Self

from vk_provider.faults import InstanceNotFoundError, NotSupportedError, RejectedError
from vk_provider.provider import (
    AttachRequest,
    ContainerIO,
    Doubt,
    ExecRequest,
    Explanation,
    InstanceRef,
    LogLine,
    LogOptions,
    NodeCapacity,
    Observation,
    Offer,
    PortConnection,
    ProviderContext,
    ProviderTraits,
    ResolvedPod,
    SpendReport,
)
from vk_provider_modal import attaching, bill, explain, logs, offers, pricing, streams, tunnels
from vk_provider_modal.config import ModalConfig, parse_config
from vk_provider_modal.stamp import app_name
from vk_provider_modal.survey import Survey
from vk_provider_modal.translate import translate
from vk_provider_modal.workspace import ReadTokens, Workspace


class _Streams:
    """What flows out of a sandbox, and into one."""

    def __init__(self, workspace: Workspace, survey: Survey) -> None:
        self._workspace = workspace
        self._survey = survey

    def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        if options.previous:
            raise NotSupportedError("Modal keeps no log of a previous container")
        return logs.read_logs(self._workspace, ref.id, options)

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        """Run a command beside the container's own process."""
        await self._survey.check_container(ref.id, request.container)
        return await streams.Session(self._workspace, ref.id, request).run(io)

    async def attach(self, ref: InstanceRef, request: AttachRequest, io: ContainerIO) -> int | None:
        """Show what the container's own process prints."""
        await self._survey.check_container(ref.id, request.container)
        return await attaching.attach(self._workspace, ref.id, request, io)

    async def open_port(self, ref: InstanceRef, port: int) -> PortConnection:
        """Through the tunnel that the pod's own port has."""
        return await tunnels.connect(await self._survey.tunnels(ref.id), port)


class _Market(_Streams):
    """What is offered, at which price, and what it came to."""

    def __init__(self, config: ModalConfig, workspace: Workspace, survey: Survey) -> None:
        super().__init__(workspace, survey)
        self._config = config
        self._rates = pricing.rates_of({}, config)
        """What cores and memory cost, as the account last told."""

    def doubts(self) -> Sequence[Doubt]:
        """Names of the configuration that Modal is not known to have."""
        return self._config.doubts

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        rates: Mapping[str, str] = {}
        # Prices are for tokens that may see the bill; sandboxes can be made without.
        with suppress(RejectedError):
            rates = await bill.read_rates(self._workspace)
        numbers = offers.numbers(rates)
        self._rates = pricing.rates_of(numbers, self._config)
        return offers.offers(gpu_count, self._config, numbers)

    def priced(self, pod: ResolvedPod, offer: Offer) -> Offer:
        return pricing.priced(pod, offer, self._rates)

    async def read_spend(self, since: datetime) -> Sequence[SpendReport]:
        return await bill.read_spend(self._workspace, self._survey.bills_to, since)

    def known_offers(self, gpu_count: int) -> Sequence[Offer]:
        return offers.known_offers(gpu_count, self._config)


class ModalProvider(_Market):
    """One Modal workspace. ``list_offers`` and ``known_offers`` come on top."""

    def __init__(self, config: ModalConfig, context: ProviderContext) -> None:
        app = config.app or app_name(context.cluster_id)
        workspace = Workspace(config, app, _token_reader(config, context))
        survey = Survey(workspace, context.cluster_id, config.expiry_margin_seconds)
        super().__init__(config, workspace, survey)
        self._traits = _traits(config)

    @property
    def traits(self) -> ProviderTraits:
        return self._traits

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._workspace.close()

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        return explain.explain(pod, offer, self._config)

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        request = translate(pod, offer, self._config).request
        made = await self._workspace.create_sandbox(request)
        self._survey.created(made)
        return InstanceRef(made.id)

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        # Modal ends a sandbox without a grace period.
        with suppress(InstanceNotFoundError):
            await self._workspace.delete_sandbox(ref.id)
        self._survey.deleted(ref.id)

    async def list_instances(self) -> Sequence[Observation]:
        return await self._survey.observations()

    async def capacity(self) -> NodeCapacity:
        return NodeCapacity()


def _traits(config: ModalConfig) -> ProviderTraits:
    return ProviderTraits(
        list_lag_seconds=config.list_lag_seconds,
        create_timeout_seconds=config.image_build_timeout_seconds
        + config.capacity_wait_seconds
        + 4 * config.request_timeout_seconds,
        delete_timeout_seconds=2 * config.request_timeout_seconds + 10,
        # An ended one is, but one that is replaced before its time limit still runs.
        ended_is_free=False,
        ids_are_global=True,
        starting_is_free=True,
    )


def _token_reader(config: ModalConfig, context: ProviderContext) -> ReadTokens:
    async def read() -> tuple[str, str]:
        # A configuration without them is refused.
        assert config.token_id is not None
        assert config.token_secret is not None
        return (
            await config.token_id.read(context.read_secret),
            await config.token_secret.read(context.read_secret),
        )

    return read


def factory(config: Mapping[str, Any], context: ProviderContext) -> ModalProvider:
    """The entry point ``modal``. Raises ``ConfigError`` with all problems."""
    return ModalProvider(parse_config(config, context.config_path), context)
