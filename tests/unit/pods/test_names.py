"""The names on pods are those that the documentation promises."""

from vk_provider.pods import names


def test_names_on_pods_are_an_interface() -> None:
    """Manifests of users contain them: a changed name is a broken cluster."""
    assert names.GPU_TYPES == "vk-provider.dev/gpu-types"
    assert names.MIN_GPU_MEMORY == "vk-provider.dev/min-gpu-memory"
    assert names.MAX_PRICE == "vk-provider.dev/max-price"
    assert names.BACKENDS == "vk-provider.dev/backends"
    assert names.DATA_CENTERS == "vk-provider.dev/data-centers"
    assert names.PLACEMENT == "vk-provider.dev/placement"
    assert names.BURST == "vk-provider.dev/burst"
