"""What counts as home, inference and training."""

from vk_provider.bursting.picture import Selection
from vk_provider.fields import Fields
from vk_provider.settings_bursting_selection import parse_selection


def test_nothing_said_is_the_defaults() -> None:
    """Every node with GPUs, our label, the class named training."""
    assert parse_selection(Fields({}, "spec", [])) == Selection()


def test_a_full_selection_is_read() -> None:
    """All four parts."""
    spec = Fields(
        {
            "resource": "amd.com/gpu",
            "home": {"nodeSelector": {"pool": "home"}},
            "inference": {"labels": {"app": "chat"}},
            "training": {"priorityClasses": ["big"], "clusterQueues": ["q"]},
        },
        "spec",
        [],
    )

    assert parse_selection(spec) == Selection(
        "amd.com/gpu", {"pool": "home"}, {"app": "chat"}, frozenset({"big"}), frozenset({"q"})
    )
    assert spec.problems == []


def test_no_label_would_be_every_pod() -> None:
    """An empty mapping is refused; a resource that is nearly a GPU's is told."""
    spec = Fields({"inference": {"labels": {}}, "resource": "nvidia.com/gpus"}, "spec", [])
    parse_selection(spec)

    assert [str(one) for one in spec.problems] == [
        "spec.inference.labels: found nothing, allowed: at least one label",
        'spec.resource: "nvidia.com/gpus" is not among the GPU resources known here; '
        'did you mean "nvidia.com/gpu"?',
    ]
