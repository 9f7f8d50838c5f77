"""What the webhook makes of pods that may burst, and which it refuses."""

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from vk_provider.bursting.opt_in import Decision, OptInRules, decide, review

RULES = OptInRules()
PROVIDER = {
    "key": "virtual-kubelet.io/provider",
    "operator": "Equal",
    "value": "vk-provider",
    "effect": "NoSchedule",
}
UNFIT = {
    "key": "vk-provider.dev/gpu-health",
    "operator": "Equal",
    "value": "training-unfit",
    "effect": "NoSchedule",
}
EVERYTHING = {"operator": "Exists"}
AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REPLICA_SET = {"kind": "ReplicaSet", "name": "chat-1", "controller": True}


def outages(seconds: int) -> list[dict[str, Any]]:
    """Tolerations of a node that does not answer."""
    return [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for key in AWAY
    ]


def pod(*, labels: Mapping[str, str] | None = None, owner: Any = REPLICA_SET, **spec: Any) -> Any:
    """A pod as its owner creates it; `labels` None: opted in."""
    metadata: dict[str, Any] = {"labels": {"vk-provider.dev/burst": "true"}}
    if labels is not None:
        metadata["labels"] = dict(labels)
    if owner:
        metadata["ownerReferences"] = [owner]
    return {"metadata": metadata, "spec": {"containers": [{"name": "main"}], **spec}}


def patched(thing: Mapping[str, Any], patch: Sequence[Mapping[str, Any]]) -> Any:
    """The pod after a patch that only adds."""
    result: Any = copy.deepcopy(dict(thing))
    for operation in patch:
        assert operation["op"] == "add"
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"][1:].split("/")
        ]
        at = result
        for part in parents:
            at = at[part]
        at[last] = operation["value"]
    return result


def admitted(thing: Mapping[str, Any], rules: OptInRules = RULES, **how: Any) -> Any:
    """The pod that comes out; applied twice it is the same."""
    decision = decide(thing, rules, **how)
    assert decision.refusal is None
    result = patched(thing, decision.patch)
    assert decide(result, rules, **how).patch == ()
    return result


def test_an_opted_in_pod_gets_tolerations_and_prefers_home() -> None:
    """It may go outside, may use GPUs unfit for training, and stays through an outage of ours."""
    spec = admitted(pod())["spec"]

    assert spec["tolerations"] == [PROVIDER, UNFIT, *outages(900)]
    expression = {"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]}
    preference = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    assert spec["affinity"]["nodeAffinity"][PREFERRED] == [preference]


def test_home_labels_become_the_preference() -> None:
    """A configured home is more exact than "not virtual"."""
    spec = admitted(pod(), OptInRules(home={"pool": "home", "gpu": "h100"}))["spec"]

    (term,) = spec["affinity"]["nodeAffinity"][PREFERRED]
    assert term["preference"]["matchExpressions"] == [
        {"key": "gpu", "operator": "In", "values": ["h100"]},
        {"key": "pool", "operator": "In", "values": ["home"]},
    ]


@pytest.mark.parametrize("labels", [{}, {"vk-provider.dev/burst": "false"}, {"app": "chat"}])
def test_a_pod_that_did_not_opt_in_is_left_alone(labels: dict[str, str]) -> None:
    """No label, or one that says no."""
    assert decide(pod(labels=labels), RULES) == Decision()


def test_a_label_on_the_pod_wins_over_that_of_its_namespace() -> None:
    """ "false" opts out."""
    refusing = pod(labels={"vk-provider.dev/burst": "false"})

    assert decide(refusing, RULES, by_namespace=True) == Decision()


def test_a_pod_opted_in_by_its_namespace_gets_the_label() -> None:
    """The gate, the descheduler and the bill look at pods."""
    unlabelled = pod(labels={"app": "chat"})
    bare = pod()
    del bare["metadata"]["labels"]

    assert admitted(unlabelled, by_namespace=True)["metadata"]["labels"] == {
        "app": "chat",
        "vk-provider.dev/burst": "true",
    }
    assert admitted(bare, by_namespace=True)["metadata"]["labels"] == {
        "vk-provider.dev/burst": "true"
    }


def test_daemons_and_training_of_an_opted_in_namespace_stay_at_home() -> None:
    """A namespace is a broad brush."""
    daemon = pod(labels={}, owner={"kind": "DaemonSet", "controller": True})
    training = pod(labels={}, priorityClassName="training")

    assert decide(daemon, RULES, by_namespace=True) == Decision()
    assert decide(training, RULES, by_namespace=True) == Decision()


def test_training_that_says_it_may_burst_is_refused() -> None:
    """It would never preempt anybody."""
    refusal = decide(pod(priorityClassName="training"), RULES).refusal or ""

    assert refusal.startswith('metadata.labels[vk-provider.dev/burst]: found "true"')
    assert "allowed: one of the two" in refusal


@pytest.mark.parametrize(
    ("toleration", "words"),
    [
        (EVERYTHING, "tolerates every taint: it would go out through a closed gate"),
        ({"operator": "Exists", "effect": "NoSchedule"}, "tolerates every taint"),
        ({"operator": "Exists", "effect": "PreferNoSchedule"}, "home would not be preferred"),
        ({"key": "vk-provider.dev/gate", "value": "return"}, "nothing could ever bring it home"),
        ({"key": "vk-provider.dev/unavailable", "operator": "Exists"}, "whose door is closed"),
        ({"key": "vk-provider.dev/unavailable", "value": "budget"}, "whose door is closed"),
    ],
)
def test_a_hole_in_the_gate_is_refused(toleration: dict[str, str], words: str) -> None:
    """With the field, what was found, and what is allowed."""
    holed = pod(tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}, toleration])
    refusal = decide(holed, RULES).refusal or ""

    assert refusal.startswith("spec.tolerations[1]: found {")
    assert words in refusal
    assert "allowed: tolerations that name their key" in refusal


def test_a_hole_is_narrowed_where_that_is_configured() -> None:
    """What it was most likely meant for stays tolerated, and a warning says so."""
    rules = OptInRules(narrow_to=("nvidia.com/gpu",))
    holed = pod(tolerations=[EVERYTHING, {"key": "vk-provider.dev/gate", "operator": "Exists"}])

    tolerations = admitted(holed, rules)["spec"]["tolerations"]
    assert tolerations[0] == {"key": "nvidia.com/gpu", "operator": "Exists"}
    assert tolerations[1:] == [PROVIDER, UNFIT, *outages(900)]
    first, second = decide(holed, rules).warnings
    assert "every taint: replaced by tolerations of nvidia.com/gpu" in first
    assert "vk-provider.dev/gate: removed" in second


def test_a_toleration_of_every_eviction_is_no_hole() -> None:
    """The gate repels and never evicts."""
    patient = {"operator": "Exists", "effect": "NoExecute"}

    assert admitted(pod(tolerations=[patient]))["spec"]["tolerations"] == [patient, PROVIDER, UNFIT]


def test_only_the_default_patience_is_replaced() -> None:
    """What a person chose stays."""
    chosen = {**outages(30)[0]}
    default = outages(300)[1]

    tolerations = admitted(pod(tolerations=[chosen, default]))["spec"]["tolerations"]
    assert tolerations == [chosen, outages(900)[1], PROVIDER, UNFIT]


def test_patience_can_be_left_alone() -> None:
    """`outage_seconds` None."""
    spec = admitted(pod(), OptInRules(outage_seconds=None))["spec"]

    assert spec["tolerations"] == [PROVIDER, UNFIT]


def test_wider_tolerations_of_a_person_count() -> None:
    """Nothing is said twice."""
    wide = {"key": "virtual-kubelet.io/provider", "operator": "Exists"}

    tolerations = admitted(pod(tolerations=[wide]))["spec"]["tolerations"]
    assert tolerations == [wide, UNFIT, *outages(900)]


def test_preferences_of_a_person_stay_beside_ours() -> None:
    """Whatever part of an affinity there is."""
    spread: Any = {"podAntiAffinity": {"x": []}}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"a": 1}}}
    preferred = {"nodeAffinity": {PREFERRED: [{"weight": 5, "preference": {}}]}}

    assert admitted(pod(affinity=spread))["spec"]["affinity"].keys() == {
        "podAntiAffinity",
        "nodeAffinity",
    }
    kept = admitted(pod(affinity=required))["spec"]["affinity"]["nodeAffinity"]
    assert kept.keys() == {"requiredDuringSchedulingIgnoredDuringExecution", PREFERRED}
    both = admitted(pod(affinity=preferred))["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    assert [term["weight"] for term in both] == [5, 100]


def test_pods_are_marked_evictable_where_that_is_configured() -> None:
    """Unless nobody would make them again, or they ask not to be moved."""
    rules = OptInRules(mark_evictable=True)
    evict = {"descheduler.alpha.kubernetes.io/evict": "true"}
    shy = pod()
    shy["metadata"]["annotations"] = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}
    annotated = pod()
    annotated["metadata"]["annotations"] = {"a": "b"}

    assert admitted(pod(), rules)["metadata"]["annotations"] == evict
    assert admitted(annotated, rules)["metadata"]["annotations"] == {"a": "b", **evict}
    assert admitted(shy, rules)["metadata"]["annotations"].keys().isdisjoint(evict)
    assert "annotations" not in admitted(pod(owner=None), rules)["metadata"]


def test_what_keeps_a_pod_from_coming_home_is_said() -> None:
    """In warnings: it is allowed, and easily overlooked."""
    volumes = [
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
        {"name": "host", "hostPath": {"path": "/models"}},
    ]
    sticky = pod(owner={"kind": "ReplicaSet"}, volumes=volumes)
    sticky["metadata"]["annotations"] = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}

    warnings = decide(sticky, RULES).warnings
    assert [words.partition(":")[0] for words in warnings] == [
        "metadata.ownerReferences",
        "metadata.annotations[descheduler.alpha.kubernetes.io/prefer-no-eviction]",
        "spec.volumes[1]",
        "spec.volumes[2]",
    ]


def question(thing: Any) -> dict[str, Any]:
    """An AdmissionReview as the API server sends it."""
    request = {"uid": "u-1", "operation": "CREATE", "object": thing}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_an_answer_carries_the_patch() -> None:
    """Encoded as the API server wants it."""
    answer = review(question(pod()), RULES, by_namespace=False)

    response = answer["response"]
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert (response["uid"], response["allowed"]) == ("u-1", True)
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == list(decide(pod(), RULES).patch)
    assert "warnings" not in response


def test_an_answer_without_changes_has_no_patch() -> None:
    """An empty one would be a mistake to the API server."""
    response = review(question(pod(labels={})), RULES, by_namespace=False)["response"]

    assert response == {"uid": "u-1", "allowed": True}


def test_a_refusal_is_told_as_an_invalid_object() -> None:
    """With the sentence, and the warnings of a pod that is let in."""
    holed = question(pod(tolerations=[EVERYTHING]))
    response = review(holed, RULES, by_namespace=False)["response"]

    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert "spec.tolerations[0]" in response["status"]["message"]
    assert review(question(pod(owner=None)), RULES, by_namespace=False)["response"]["warnings"]


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"apiVersion": "admission.k8s.io/v1beta1", "request": {}},
        {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}},
        {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u", "object": {"kind": "Pod"}}},
        question({"metadata": [], "spec": {}}),
        question({"metadata": {"labels": [1]}, "spec": {}}),
        question({"metadata": {"ownerReferences": ["me"]}, "spec": {}}),
        question(pod(tolerations=1)),
        question(pod(volumes=[1])),
        question(pod(priorityClassName=["training"])),
        question(pod(affinity={"nodeAffinity": 1})),
    ],
)
def test_what_is_no_review_of_a_pod_is_an_error(nonsense: dict[str, Any]) -> None:
    """The caller answers 400."""
    with pytest.raises(ValueError, match=r"found no .*, allowed: "):
        review(nonsense, RULES, by_namespace=False)
