"""Names that nobody has heard of: what a person is told."""

import pytest

from vk_provider.doubts import Doubt, misspelt_device, resembling, unheard

GPUS = ("NVIDIA L40S", "NVIDIA L40", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NVIDIA L40SS", ("NVIDIA L40S",)),
        ("nvidia l40s", ("NVIDIA L40S",)),
        ("H100", ("NVIDIA H100 PCIe", "NVIDIA H100 NVL")),
        ("NVIDIA", GPUS[:4]),
        ("Voodoo 2", ()),
        ("--", ()),
    ],
)
def test_what_a_person_may_have_meant(name: str, meant: tuple[str, ...]) -> None:
    """Every name that holds the words, else the nearest; never a long list."""
    assert resembling(name, GPUS) == meant


def test_an_unknown_name_is_a_doubt_with_its_place() -> None:
    """And a known one is none."""
    doubts = list(unheard("config.gpuTypes", ["NVIDIA L40", "NVIDIA H20", "?"], GPUS, "GPU types"))

    assert doubts == [
        Doubt(
            "config.gpuTypes[1]",
            '"NVIDIA H20" is not among the GPU types known here; did you mean "NVIDIA H200"?',
        ),
        Doubt(
            "config.gpuTypes[2]",
            '"?" is not among the GPU types known here; look whether it is spelt as there',
        ),
    ]


@pytest.mark.parametrize(
    ("resource", "is_doubtful"),
    [
        ("nvidia.com/gpu", False),
        ("nvidia.com/gpus", True),
        ("nvida.com/gpu", True),
        ("nvidia.com/gpu.shared", False),
        ("nvidia.com/mig-1g.5gb", False),
        ("example.com/fpga", False),
    ],
)
def test_a_device_that_is_nearly_a_gpu_is_doubtful(resource: str, is_doubtful: bool) -> None:
    """Other devices are anybody's business."""
    assert (misspelt_device("a", resource) is not None) is is_doubtful
