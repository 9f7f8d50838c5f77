"""The words of Events, Failed pods and waiting containers are those that are documented."""

import pytest

from vk_provider.pods.events import EventReason, FailedReason, WaitingReason, counted, out_of


def test_failed_reasons_are_an_interface() -> None:
    """Dashboards match them."""
    assert set(FailedReason) == {
        "OutOfCapacity",
        "Unsupported",
        "Rejected",
        "ProviderLost",
        "Preempted",
        "ContainerExited",
        "NodeAffinity",
        "TaintToleration",
        "DeadlineExceeded",
        "PodOSNotSupported",
    }


def test_waiting_reasons_are_an_interface() -> None:
    """So are the reasons for which a container has not started."""
    assert set(WaitingReason) == {
        "ContainerCreating",
        "PodInitializing",
        "CreateBackOff",
        "ProviderUnavailable",
        "CreateContainerConfigError",
        "DaemonSetNotSupported",
    }


def test_references_have_the_event_reasons_of_the_go_project() -> None:
    """Optional or Mandatory, ConfigMap or Secret."""
    for need in ("Optional", "Mandatory"):
        for kind in ("ConfigMap", "Secret"):
            assert EventReason(f"{need}{kind}NotFound")


def test_out_of_a_resource_carries_its_name() -> None:
    """Extended resources with their domain, as a kubelet writes them."""
    assert out_of("nvidia.com/gpu") == "OutOfnvidia.com/gpu"


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        (str(FailedReason.OUT_OF_CAPACITY), "OutOfCapacity"),
        (out_of("example.com/anything"), "OutOfResource"),
        ("UnexpectedAdmissionError", "Other"),
    ],
)
def test_nobody_makes_series_by_naming_resources(reason: str, label: str) -> None:
    """A pod that names its node may ask for anything, as often as it likes."""
    assert counted(reason) == label
