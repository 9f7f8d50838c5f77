"""Workloads: pods and pod templates, wherever a manifest has them."""

import pytest

from vk_provider.offline.workloads import Manifests, read_manifests
from vk_provider.pods.references import ObjectKey
from vk_provider.yaml_documents import Complaint, parse_documents

POD = "{containers: [{name: a, image: x}]}"


def manifests(text: str) -> tuple[Manifests, list[str]]:
    """What a text holds, and what is wrong with it."""
    complaints: list[Complaint] = []
    found = read_manifests(parse_documents("f.yaml", text, complaints), complaints)
    return found, [str(each) for each in complaints]


def names(text: str) -> list[str]:
    """The workloads by their names."""
    return [str(each) for each in manifests(text)[0].workloads]


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("Deployment", f"{{template: {{spec: {POD}}}}}", "spec.template"),
        ("Job", f"{{template: {{spec: {POD}}}}}", "spec.template"),
        (
            "CronJob",
            f"{{jobTemplate: {{spec: {{template: {{spec: {POD}}}}}}}}}",
            "spec.jobTemplate.spec.template",
        ),
        (
            "JobSet",
            f"{{replicatedJobs: [{{template: {{spec: {{template: {{spec: {POD}}}}}}}}}]}}",
            "spec.replicatedJobs[0].template.spec.template",
        ),
        ("Pod", POD, ""),
    ],
)
def test_a_template_is_found_wherever_it_is(kind: str, spec: str, path: str) -> None:
    """Known kinds and unknown ones alike."""
    found, complaints = manifests(f"kind: {kind}\nmetadata: {{name: n}}\nspec: {spec}\n")

    assert complaints == []
    (workload,) = found.workloads
    assert str(workload) == f"{kind} default/n"
    assert workload.template_path == path
    assert workload.pod["spec"]["restartPolicy"] == "Always"


def test_two_templates_of_one_object_are_told_apart() -> None:
    """By their place in it."""
    spec = f"{{l: {{leaderTemplate: {{spec: {POD}}}, workerTemplate: {{spec: {POD}}}}}}}"

    assert names(f"kind: LeaderWorkerSet\nmetadata: {{name: n}}\nspec: {spec}\n") == [
        "LeaderWorkerSet default/n (spec.l.leaderTemplate)",
        "LeaderWorkerSet default/n (spec.l.workerTemplate)",
    ]


def test_lists_are_opened() -> None:
    """As `kubectl get -o yaml` writes them; the items of a typed list need no kind."""
    text = f"""\
kind: List
items:
  - {{kind: Pod, metadata: {{name: a, namespace: ns}}, spec: {POD}}}
---
kind: PodList
items:
  - {{metadata: {{generateName: b-}}, spec: {POD}}}
  - 3
"""

    assert names(text) == ["Pod ns/a", "Pod default/b-"]
    assert [each.line for each in manifests(text)[0].workloads] == [3, 7]


def test_objects_that_are_referred_to_are_kept() -> None:
    """ConfigMaps and Secrets by their keys; the rest is only named."""
    found, complaints = manifests(
        "kind: ConfigMap\nmetadata: {name: c}\n---\n"
        "kind: Secret\nmetadata: {name: s, namespace: n}\n---\nkind: Service\nmetadata: {name: v}\n"
    )

    assert set(found.objects) == {
        ObjectKey("ConfigMap", "default", "c"),
        ObjectKey("Secret", "n", "s"),
    }
    assert found.ignored == ("Service v",)
    assert complaints == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("metadata: {}\n", "f.yaml:1: kind: missing, must be given"),
        ("# a\n- b\n", "f.yaml:2: not a Kubernetes object, a mapping is needed"),
        ("kind: Pod\nspec: {}\n", "f.yaml:2: spec.containers: missing, must be given"),
        (
            "kind: List\nitems:\n- kind: Pod\n",
            "f.yaml:3: items[0].spec.containers: missing, must be given",
        ),
    ],
)
def test_what_is_no_manifest_is_a_complaint(text: str, complaint: str) -> None:
    """With its line."""
    assert manifests(text)[1] == [complaint]


def test_only_a_pod_without_an_owner_is_bare() -> None:
    """Nothing would recreate it."""
    owned = f"kind: Pod\nmetadata: {{name: a, ownerReferences: [{{kind: Job}}]}}\nspec: {POD}\n"
    bare = f"kind: Pod\nmetadata: {{name: b}}\nspec: {POD}\n"
    template = f"kind: Job\nmetadata: {{name: c}}\nspec: {{template: {{spec: {POD}}}}}\n"

    found, _ = manifests(f"{owned}---\n{bare}---\n{template}")

    assert [each.is_bare for each in found.workloads] == [False, True, False]


def test_a_pods_path_reads_as_in_the_document() -> None:
    """So that a person finds the line."""
    template = f"kind: Job\nmetadata: {{name: c}}\nspec: {{template: {{spec: {POD}}}}}\n"
    (workload,) = manifests(template)[0].workloads

    assert workload.in_document("spec.containers[0]") == "spec.template.spec.containers[0]"


def test_a_bottomless_document_ends() -> None:
    """An anchor may contain itself."""
    assert manifests("kind: X\nspec: &a {b: *a}\n")[0].workloads == ()


def test_what_an_api_server_refuses_is_a_complaint_with_its_line() -> None:
    """At the field's own place in the file; a custom resource may have fields of its own."""
    spec = "{imaegs: x, containers: [{name: a}]}"
    text = f"kind: KIND\nspec:\n  template:\n    spec:\n      {spec}\n"
    assert not manifests(text.replace("KIND", "InferenceService"))[1]
    [complaint] = manifests(text.replace("KIND", "Job"))[1]
    assert complaint.startswith("f.yaml:5: spec.template.spec.imaegs: unknown field")
