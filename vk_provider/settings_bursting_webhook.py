"""The block ``webhook`` of kind ``Bursting``: pods that may burst are prepared on arrival. Pure.

Fed by :mod:`vk_provider.settings_bursting`; read by ``controllers.webhook``, which lays it over
:class:`vk_provider.bursting.opt_in.OptInRules`.
"""

from __future__ import annotations

from dataclasses import dataclass

from vk_provider.bursting import names
from vk_provider.fields import Fields
from vk_provider.syntax import DNS_LABEL, DNS_LABEL_WORDS, DNS_SUBDOMAIN
from vk_provider.urls import http_url

REFUSE, NARROW = "refuse", "narrow"
DEFAULT_NARROW_TO = ("nvidia.com/gpu",)
_OURS = (names.GATE_TAINT, names.UNAVAILABLE_TAINT, names.PREFER_HOME_TAINT)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where the webhook listens, under which names it is found, and what it does to pods.

    ``service`` is the Service that the MutatingWebhookConfiguration of the manifests names; ``url``
    replaces it for an API server that can't reach Services. ``secret`` holds the certificates,
    which all replicas share. ``namespace`` is of both; None means the one we run in.
    ``narrow_to`` None: tolerations of everything are refused; else they become tolerations of
    these keys. ``outage_seconds`` None leaves them.
    """

    enabled: bool = False
    address: str = ""
    port: int = 9443
    configuration: str = "vk-provider-opt-in"
    namespace: str | None = None
    service: str = "vk-provider-webhook"
    url: str | None = None
    secret: str = "vk-provider-webhook"  # a name
    narrow_to: tuple[str, ...] | None = None
    outage_seconds: int | None = 900
    mark_evictable: bool = False


def parse_webhook(block: Fields) -> WebhookSettings:
    """How pods that may burst are prepared."""
    usual = WebhookSettings()
    patience = block.integer("tolerationSeconds", usual.outage_seconds, 0, 7 * 86400)
    settings = WebhookSettings(
        enabled=block.boolean("enabled", False),
        address=block.text("address", usual.address),
        port=block.integer("port", usual.port, 0, 65535),
        configuration=block.text("configuration", usual.configuration, pattern=DNS_SUBDOMAIN),
        namespace=block.optional_text("namespace", pattern=DNS_LABEL, allowed=DNS_LABEL_WORDS),
        service=block.text("service", usual.service, pattern=DNS_LABEL, allowed=DNS_LABEL_WORDS),
        url=_url(block),
        secret=block.text("secret", usual.secret, pattern=DNS_SUBDOMAIN),
        narrow_to=_narrow_to(block),
        outage_seconds=patience or None,
        mark_evictable=block.boolean("markEvictable", False),
    )
    block.done()
    return settings


def _url(block: Fields) -> str | None:
    found = block.optional_text("url")
    parts = http_url(found or "")
    if found is not None and (parts is None or found != f"https://{parts.netloc}"):
        block.wrong("url", found, "https://HOST:PORT")
    return found


def _narrow_to(block: Fields) -> tuple[str, ...] | None:
    mode = block.text("tolerateEverything", REFUSE, choices=(REFUSE, NARROW))
    keys = block.texts("narrowTo", DEFAULT_NARROW_TO)
    for index, key in enumerate(keys):
        if key in _OURS:
            block.wrong(f"narrowTo[{index}]", key, "any key but those of our own taints")
    return keys if mode == NARROW else None
