"""What the tests of this provider have in common: a configuration, and pods with references."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_kubernetes.config import KubernetesConfig

from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.testing.builders import NAMESPACE


@pytest.fixture
def config() -> KubernetesConfig:
    """The smallest one."""
    return KubernetesConfig(namespace="vk-node-1")


@pytest.fixture
def objects() -> dict[ObjectKey, dict[str, Any]]:
    """A ConfigMap ``conf``, a Secret ``login`` and a pull secret ``regcred``."""
    docker = {".dockerconfigjson": "eyJhdXRocyI6e319"}
    return {
        ObjectKey(CONFIG_MAP, NAMESPACE, "conf"): {
            "data": {"mode": "fast", "level": "3"},
            "binaryData": {"blob": "AAE="},
        },
        ObjectKey(SECRET, NAMESPACE, "login"): {
            "type": "kubernetes.io/basic-auth",
            "data": {"username": "bWU=", "password": "c2VjcmV0LXdvcmQ="},
        },
        ObjectKey(SECRET, NAMESPACE, "regcred"): {
            "type": "kubernetes.io/dockerconfigjson",
            "data": docker,
        },
    }
