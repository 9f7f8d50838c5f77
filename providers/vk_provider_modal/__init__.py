"""Modal as a backend: the entry point ``modal``, and its simulator beside it. Wants the extra
``modal``; nothing else of the product imports it."""

from vk_provider_modal.provider import factory

__all__ = ["factory"]
