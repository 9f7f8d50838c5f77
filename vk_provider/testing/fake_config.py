"""The configuration block of the fake provider, checked field by field.

Fed by ``spec.backends[].config``; feeds :mod:`.fake` and :mod:`.fake_service`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import Fields
from vk_provider.pods.types import IMPLICIT_OFFER, Offer, Stock


@dataclass(frozen=True, slots=True)
class FakeOffer:
    """One kind of machine that the fake service rents. ``capacity`` None means endless.

    Without a GPU type it is a machine for CPU pods only.
    """

    name: str
    gpu_type: str | None = None
    gpu_memory_gib: int | None = None
    data_center: str | None = None
    usd_per_hour: float | None = None
    capacity: int | None = None

    def offer(self, gpu_count: int, used: int) -> Offer:
        """It as an offer for ``gpu_count`` GPUs; the price is one GPU's."""
        per_hour = self.usd_per_hour
        return Offer(
            id=f"{self.name}/{gpu_count}",
            gpu_type=self.gpu_type,
            gpu_count=gpu_count,
            gpu_memory_gib=self.gpu_memory_gib,
            data_center=self.data_center,
            usd_per_hour=None if per_hour is None else per_hour * max(gpu_count, 1),
            stock=self._stock(used),
        )

    def _stock(self, used: int) -> Stock:
        if self.capacity is None:
            return Stock.HIGH
        return Stock.LOW if used < self.capacity else Stock.NONE


@dataclass(frozen=True, slots=True)
class FakeConfig:
    """How the fake service behaves. All times are seconds; None means never.

    ``service`` names a service that all providers in this process with the same name share, as two
    nodes share one account; without it each provider has a service of its own. ``faults_file`` is
    read on every call, see :mod:`.fake_faults`. ``leftovers`` names pods (NAMESPACE/NAME) whose
    instances are there from the start, as a node that died would leave them. ``reports_spend``: it
    tells its bill, by the hour.
    """

    service: str | None = None
    offers: tuple[FakeOffer, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    start_after_seconds: float = 0.0
    run_seconds: float | None = None
    exit_code: int = 0
    create_seconds: float = 0.0
    list_lag_seconds: float = 0.0
    ended_is_free: bool = True
    reports_spend: bool = False
    direct_addresses: bool = False
    ids_are_global: bool = False
    faults_file: str | None = None
    leftovers: tuple[str, ...] = ()

    def offers_for(self, gpu_count: int, used: Callable[[str], int]) -> Sequence[Offer]:
        """The offers that could carry so many GPUs; ``used`` counts what is rented of each."""
        if not self.offers:
            return (replace(IMPLICIT_OFFER, gpu_count=gpu_count),)
        return tuple(
            each.offer(gpu_count, used(each.name))
            for each in self.offers
            if (each.gpu_type is None) == (gpu_count == 0)
        )


def parse_config(config: Mapping[str, Any], path: str) -> FakeConfig:
    """The block as a value. Raises ``ConfigError`` with every problem in it."""
    problems: list[FieldProblem] = []
    fields = Fields(config, path, problems)
    parsed = FakeConfig(
        service=fields.optional_text("service"),
        offers=tuple(_offer(each) for each in fields.children("offers")),
        capacity=fields.mapping("capacity", numbers=True),
        start_after_seconds=fields.number("startAfterSeconds", 0.0, minimum=0),
        run_seconds=fields.number("runSeconds", None, minimum=0),
        exit_code=fields.integer("exitCode", 0, minimum=0, maximum=255),
        create_seconds=fields.number("createSeconds", 0.0, minimum=0),
        list_lag_seconds=fields.number("listLagSeconds", 0.0, minimum=0),
        ended_is_free=fields.boolean("endedIsFree", True),
        reports_spend=fields.boolean("reportsSpend", False),
        ids_are_global=fields.boolean("idsAreGlobal", False),
        direct_addresses=fields.boolean("directAddresses", False),
        faults_file=fields.optional_text("faultsFile"),
        leftovers=tuple(fields.texts("leftovers")),
    )
    fields.done()
    _refuse_twins(parsed.offers, fields.at("offers"), problems)
    if problems:
        raise ConfigError(problems)
    return parsed


def _offer(fields: Fields) -> FakeOffer:
    offer = FakeOffer(
        name=fields.text("name"),
        gpu_type=fields.optional_text("gpuType"),
        gpu_memory_gib=fields.integer("gpuMemoryGiB", None, minimum=1),
        data_center=fields.optional_text("dataCenter"),
        usd_per_hour=fields.number("usdPerHour", None, minimum=0),
        capacity=fields.integer("capacity", None, minimum=0),
    )
    fields.done()
    return offer


def _refuse_twins(offers: tuple[FakeOffer, ...], path: str, problems: list[FieldProblem]) -> None:
    names = [offer.name for offer in offers]
    for index, name in enumerate(names):
        if name and name in names[:index]:
            message = f'found "{name}" twice, allowed: names that are unique'
            problems.append(FieldProblem(f"{path}[{index}].name", message))
