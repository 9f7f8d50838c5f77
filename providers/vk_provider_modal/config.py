"""The configuration block of the ``modal`` provider, checked field by field.

Fed by ``spec.backends[].config``; feeds ``translate``, ``offers`` and ``client``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vk_provider.doubts import Doubt, unheard, unknown
from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import Fields, join_path
from vk_provider.secrets import SecretSource
from vk_provider.urls import http_url
from vk_provider_modal.gpus import BARE_RATES, DEFAULT_TYPES, KNOWN

MOST_LIFETIME_SECONDS = 86_400
"""Modal ends a sandbox after 24 hours, and nothing extends it."""
MOST_CAPACITY_WAIT_SECONDS = 1260
"""After 21 minutes without a place the SDK itself gives up."""
CLOUDS = ("aws", "gcp", "oci", "auto")
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_NAME_ALLOWED = "up to 64 letters, digits, '-', '_', '.'"
_GPU = re.compile(r"[A-Za-z][A-Za-z0-9-]*[!+]?")


@dataclass(frozen=True, slots=True)
class ModalConfig:
    """One Modal workspace as one backend. Lists are in the order of preference.

    ``base_url`` None is the SDK's own default. ``app`` None: one App per cluster, named after it.
    ``volumes`` maps a claim's name to a Modal Volume; ``usd_per_hour`` a GPU type to a price that
    wins over the account's live table. ``doubts``: names that may be slips.
    """

    token_id: SecretSource | None
    token_secret: SecretSource | None
    base_url: str | None = None
    app: str | None = None
    environment: str | None = None
    gpu_types: tuple[str, ...] = DEFAULT_TYPES
    regions: tuple[str, ...] = ()
    cloud: str | None = None
    max_usd_per_hour: float | None = None
    usd_per_hour: Mapping[str, float] = field(default_factory=dict)
    volumes: Mapping[str, str] = field(default_factory=dict)
    inbound_cidrs: tuple[str, ...] | None = None
    max_lifetime_seconds: int = MOST_LIFETIME_SECONDS
    expiry_margin_seconds: int = 300
    capacity_wait_seconds: float = 300.0
    image_build_timeout_seconds: float = 1800.0
    request_timeout_seconds: float = 20.0
    list_lag_seconds: float = 10.0
    creates_per_second: float = 5.0
    create_burst: int = 150
    force_build: bool = False
    files_wrapper: bool = False
    doubts: tuple[Doubt, ...] = ()


def parse_config(config: Mapping[str, Any], path: str) -> ModalConfig:
    """The block as a value. Raises ``ConfigError`` with every problem in it."""
    problems: list[FieldProblem] = []
    fields = Fields(config, path, problems)
    lifetime = fields.integer(
        "maxLifetimeSeconds", MOST_LIFETIME_SECONDS, minimum=60, maximum=MOST_LIFETIME_SECONDS
    )
    parsed = ModalConfig(
        token_id=fields.secret("tokenId"),
        token_secret=fields.secret("tokenSecret"),
        base_url=_base_url(fields),
        app=fields.optional_text("app", pattern=_NAME, allowed=_NAME_ALLOWED),
        environment=fields.optional_text("environment", pattern=_NAME, allowed=_NAME_ALLOWED),
        gpu_types=_gpu_types(fields),
        regions=_unique(fields, "regions"),
        cloud=fields.optional_text("cloud", choices=CLOUDS),
        max_usd_per_hour=fields.number("maxUsdPerHour", None, minimum=0.01),
        usd_per_hour=_prices(fields),
        volumes=fields.mapping("volumes"),
        inbound_cidrs=_cidrs(fields),
        max_lifetime_seconds=lifetime,
        expiry_margin_seconds=fields.integer(
            "expiryMarginSeconds", min(300, lifetime // 4), minimum=0, maximum=lifetime // 2
        ),
        capacity_wait_seconds=fields.number(
            "capacityWaitSeconds", 300.0, minimum=1, maximum=MOST_CAPACITY_WAIT_SECONDS
        ),
        image_build_timeout_seconds=fields.number("imageBuildTimeoutSeconds", 1800.0, minimum=1),
        request_timeout_seconds=fields.number("requestTimeoutSeconds", 20.0, minimum=1),
        list_lag_seconds=fields.number("listLagSeconds", 10.0, minimum=0, maximum=600),
        creates_per_second=fields.number("createsPerSecond", 5.0, minimum=0.1),
        create_burst=fields.integer("createBurst", 150, minimum=1),
        force_build=fields.boolean("forceBuild", False),
        files_wrapper=fields.boolean("filesWrapper", False),
    )
    fields.done()
    if problems:
        raise ConfigError(problems)
    return replace(parsed, doubts=tuple(_doubts(fields, parsed)))


def _doubts(fields: Fields, parsed: ModalConfig) -> Iterator[Doubt]:
    """GPU types that the documentation does not name, and prices of what nobody asks for."""
    names = [word.strip().upper() for word in fields.texts("gpuTypes")]
    yield from unheard(fields.at("gpuTypes"), names, tuple(KNOWN), "GPU types of Modal")
    priced = (*KNOWN, *parsed.gpu_types, *BARE_RATES)
    for name in fields.child("usdPerHour").raw():
        path = join_path(fields.at("usdPerHour"), name)
        doubt = unknown(path, name.upper(), priced, "things of Modal with a price")
        if doubt is not None:
            yield doubt


def _base_url(fields: Fields) -> str | None:
    found = fields.optional_text("baseUrl")
    if found is None:
        return None
    bare = found.rstrip("/")
    for each in bare.split(","):
        parts = http_url(each.strip())
        if parts is None or parts.path:
            fields.wrong("baseUrl", found, 'a URL such as "https://api.modal.com"')
            return None
        if parts.username or parts.password:
            fields.refuse("baseUrl", "a password can't stand in the URL; use tokenSecret")
            return None
    return bare


def _gpu_types(fields: Fields) -> tuple[str, ...]:
    found = _unique(fields, "gpuTypes", DEFAULT_TYPES)
    for index, name in enumerate(found):
        if not _GPU.fullmatch(name):
            fields.wrong(
                f"gpuTypes[{index}]", name, 'a type such as "H100" (counts are the pod\'s)'
            )
    return tuple(dict.fromkeys(name.upper() for name in found))


def _unique(fields: Fields, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    words = [word.strip() for word in fields.texts(key, default)]
    for index, word in enumerate(words):
        if not word:
            fields.wrong(f"{key}[{index}]", word, "a name from Modal's documentation")
    return tuple(dict.fromkeys(word for word in words if word))


def _prices(fields: Fields) -> Mapping[str, float]:
    level = fields.child("usdPerHour")
    found = {name.upper(): level.number(name, 0.0, minimum=0.001) for name in level.raw()}
    return {name: price for name, price in found.items() if price}


def _cidrs(fields: Fields) -> tuple[str, ...] | None:
    if not fields.has("inboundCidrs"):
        fields.take("inboundCidrs")
        return None
    found = fields.texts("inboundCidrs")
    for index, cidr in enumerate(found):
        try:
            ipaddress.ip_network(cidr)
        except ValueError:
            fields.wrong(f"inboundCidrs[{index}]", cidr, 'a network such as "203.0.113.0/24"')
    return found
