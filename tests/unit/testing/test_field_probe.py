"""The probe tells what a provider does with a field from what it leaves undone."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.faults import FieldProblem, UnsupportedFieldsError
from vk_provider.pods.reading import mapping, mappings
from vk_provider.pods.types import Explanation, FieldNote, Offer, ResolvedPod
from vk_provider.testing.fake import FakeBackend, FakeConfig, FakeProvider
from vk_provider.testing.field_probe import Fate, Found, probe
from vk_provider.testing.field_samples import BESIDE, LISTS, SAMPLES, SCHEMA


class Selective(FakeProvider):
    """A provider that does something else with each of a few fields, and nothing with the rest."""

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        """Some sent, some rewritten, some noted, some refused."""
        spec, container = mapping(pod.pod, "spec"), pod.containers[0]
        if spec.get("hostNetwork"):
            raise UnsupportedFieldsError([FieldProblem("spec.hostNetwork", "no")])
        if mapping(spec, "securityContext").get("runAsUser"):
            raise UnsupportedFieldsError([FieldProblem("spec.securityContext.runAsUser", "root")])
        request: dict[str, Any] = {
            "env": dict(container.env),
            "directory": container.spec.get("workingDir"),
            "seconds": 60 * (spec.get("activeDeadlineSeconds") or 0),
        }
        notes = [FieldNote("spec.hostname", "ours")] if spec.get("hostname") else []
        notes += [
            FieldNote(f"spec.volumes[{index}]", "not there")
            for index, volume in mappings(spec, "volumes")
            if "csi" in volume
        ]
        return Explanation(request, notes)


@pytest.fixture(scope="module")
def found() -> dict[str, Found]:
    """What becomes of each field."""
    return {each.path: each for each in probe(Selective(FakeBackend(FakeConfig()), "cluster"))}


@pytest.mark.parametrize(
    ("path", "fate", "why"),
    [
        ("spec.containers.workingDir", Fate.SENT, ""),
        ("spec.activeDeadlineSeconds", Fate.REWRITTEN, ""),
        ("spec.containers.env.valueFrom.secretKeyRef", Fate.RESOLVED, ""),
        ("spec.containers.env.value", Fate.SENT, ""),
        ("spec.hostname", Fate.IGNORED, "ours"),
        ("spec.hostNetwork", Fate.REFUSED, "no"),
        ("spec.securityContext.runAsUser", Fate.REFUSED, "root"),
        ("spec.securityContext.runAsGroup", Fate.SILENT, ""),
        ("spec.volumes.csi", Fate.IGNORED, "not there"),
        ("spec.nodeName", Fate.HOME, "home's scheduler has acted on it"),
        ("spec.subdomain", Fate.SILENT, ""),
        # All that is inside of it fares alike, so it stands for all of it.
        ("spec.containers.livenessProbe", Fate.SILENT, ""),
    ],
)
def test_the_fate_of_a_field_is_found_out(
    found: dict[str, Found], path: str, fate: Fate, why: str
) -> None:
    """By asking about two pods that differ in it alone."""
    assert found[path] == Found(path, fate, why)


def test_every_field_of_a_pod_is_asked_about(found: dict[str, Found]) -> None:
    """Itself, or what is inside of it, or what it is inside of."""
    for field in SCHEMA["PodSpec"]:
        assert any(path.split(".")[1] == field for path in found), field


def test_samples_are_of_fields_that_are_there() -> None:
    """A misspelt one would never be tried."""
    keys = {*SAMPLES, *LISTS, *(key for key in BESIDE if "." in key)}

    assert [key for key in keys if key.partition(".")[2] not in SCHEMA[key.partition(".")[0]]] == []
    assert [key for key in BESIDE if key.partition(".")[0] not in SCHEMA] == []
