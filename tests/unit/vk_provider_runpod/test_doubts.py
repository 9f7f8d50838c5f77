"""Names that RunPod is not known to have: told, and honoured."""

from vk_provider_runpod.config import parse_config
from vk_provider_runpod.doubts import not_sold

KEY = {"apiKey": {"file": "/key"}}


def test_an_unknown_name_is_honoured_and_told_with_its_place() -> None:
    """As it was written; data centres in whichever case."""
    lists = {
        "gpuTypes": ["NVIDIA L4", "NVIDIA L4", "NVIDIA L40SS"],
        "cpuTypes": ["cpu6c"],
        "dataCenters": ["eu-ro-1", "EU-R0-1"],
    }

    parsed = parse_config({**KEY, **lists}, "config")

    assert parsed.gpu_types == ("NVIDIA L4", "NVIDIA L40SS")
    told = [str(doubt) for doubt in parsed.doubts]
    assert [words.partition(": ")[0] for words in told] == [
        "config.gpuTypes[2]",
        "config.cpuTypes[0]",
        "config.dataCenters[1]",
    ]
    assert told[0].endswith('did you mean "NVIDIA L40S"?')


def test_what_the_live_catalogue_lacks_is_told() -> None:
    """Nothing can be said of an empty one."""
    catalogue = {"gpus": [{"id": "NVIDIA L4"}, {"id": "NVIDIA B900"}]}

    told = dict(not_sold(["NVIDIA L4", "B900", "Voodoo"], catalogue))

    assert told == {
        "B900": 'gpuTypes: RunPod\'s catalogue has no "B900" for us; did you mean "NVIDIA B900"?',
        "Voodoo": 'gpuTypes: RunPod\'s catalogue has no "Voodoo" for us',
    }
    assert not list(not_sold(["NVIDIA L4"], {}))
