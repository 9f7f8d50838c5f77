"""Another Kubernetes cluster as a backend: the entry point ``kubernetes``."""

from vk_provider_kubernetes.provider import factory

__all__ = ["factory"]
