"""The packaged descheduler: its two forms say the same, and it may do no more than it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from vk_provider.bursting.checkup import Level
from vk_provider.bursting.descheduler_homecoming import Expected, examine
from vk_provider.bursting.limits import HomecomingLimits
from vk_provider.doctor.descheduler_sources import find, of_documents

FOLDER = Path(__file__).parents[3] / "deploy" / "descheduler"


def objects(name: str) -> list[dict[str, Any]]:
    """The documents of a file."""
    return [each for each in yaml.safe_load_all((FOLDER / name).read_text()) if each]


def test_the_charts_values_hold_the_same_policy() -> None:
    """Whoever prefers Helm gets no other pace."""
    (policy,), (values,) = objects("policy.yaml"), objects("values.yaml")

    assert values["deschedulerPolicyAPIVersion"] == policy["apiVersion"]
    rest = {key: value for key, value in policy.items() if key not in ("apiVersion", "kind")}
    assert values["deschedulerPolicy"] == rest


def test_both_forms_pass_the_checkup() -> None:
    """With the default limits of the gate."""
    (policy,), (deployment,) = objects("policy.yaml"), objects("deployment.yaml")
    metadata = {"name": "vk-provider-descheduler", "namespace": "vk-provider"}
    text = (FOLDER / "policy.yaml").read_text()
    maps = {
        ("vk-provider", metadata["name"]): {"metadata": metadata, "data": {"policy.yaml": text}}
    }
    programs = [*find([deployment], maps).programs]
    programs += of_documents([("values", objects("values.yaml")[0]), ("policy", policy)]).programs

    assert len(programs) == 3
    for program in programs:
        levels = {one.level for one in examine(program, Expected(HomecomingLimits()))}
        assert levels == {Level.OK}, program.where


def test_it_evicts_and_never_deletes() -> None:
    """So budgets and grace periods hold."""
    rules = [rule for each in objects("rights.yaml") for rule in each.get("rules", ())]

    assert not any("delete" in rule["verbs"] or "*" in rule["verbs"] for rule in rules)
    assert {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]} in rules


def test_every_manifest_is_part_of_the_kustomization() -> None:
    """But for the chart's values."""
    (kustomization,) = objects("kustomization.yaml")
    files = {file.name for file in FOLDER.glob("*.yaml")} - {"kustomization.yaml", "values.yaml"}

    assert {*kustomization["resources"], "policy.yaml"} == files


def test_the_container_is_locked_down() -> None:
    """As every container that we ship."""
    (deployment,) = objects("deployment.yaml")
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"]
