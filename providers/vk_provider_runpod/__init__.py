"""RunPod (REST v2) as a backend: the entry point ``runpod``, and its simulator beside it."""

from vk_provider_runpod.provider import factory

__all__ = ["factory"]
