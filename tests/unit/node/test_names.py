"""The names on Nodes are those that the documentation promises."""

from vk_provider.node import names


def test_names_on_nodes_are_an_interface() -> None:
    """Policies, tolerations and dashboards of users contain them."""
    assert names.PROVIDER_TAINT == "virtual-kubelet.io/provider"
    assert names.PREFER_HOME_TAINT == "vk-provider.dev/prefer-home"
    assert names.GATE_TAINT == "vk-provider.dev/gate"
    assert names.UNAVAILABLE_TAINT == "vk-provider.dev/unavailable"
    assert names.MANAGED_BY == "vk-provider.dev/managed-by"
    assert names.GPU_HEALTH_TAINT == "vk-provider.dev/gpu-health"
    assert names.PROVIDER_READY == "ProviderReady"
    assert (names.TYPE_LABEL, names.TYPE_VALUE) == ("type", "virtual-kubelet")
