"""Explain: each backend's answer to each workload, with every reason."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import pytest

from vk_provider.faults import FieldProblem, RejectedError, UnsupportedFieldsError
from vk_provider.offline.explain import AskedBackend, Judgement, Report, explain
from vk_provider.offline.workloads import read_manifests
from vk_provider.placement.budget import BudgetLimits, Caps
from vk_provider.pods.admission import AdmittingNode
from vk_provider.pods.types import ResolvedPod
from vk_provider.provider import Explanation, FieldNote, Offer, Provider, ProviderTraits
from vk_provider.yaml_documents import parse_documents

TAINT = {"key": "virtual-kubelet.io/provider", "value": "vk-provider", "effect": "NoSchedule"}
VIEW = AdmittingNode(name="n", permanent_taints=(TAINT,))
Answer = Callable[[ResolvedPod, Offer], Explanation]


def accepts(pod: ResolvedPod, offer: Offer) -> Explanation:
    """A request that shows what it was made from."""
    env = dict(pod.containers[0].env)
    return Explanation({"offer": offer.id, "env": env}, (FieldNote("spec.x", "without effect"),))


class Backend:
    """A provider that only explains."""

    def __init__(self, answer: Answer = accepts, **traits: Any) -> None:
        self.answer = answer
        self.traits = ProviderTraits(list_lag_seconds=1, **traits)

    async def __aenter__(self) -> Self:
        """Never called: explaining enters nothing."""
        raise AssertionError("entered")

    async def __aexit__(self, *exc: object) -> None:
        """Never called."""

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        """Whatever the test wants."""
        return self.answer(pod, offer)


class Catalogue(Backend):
    """One whose offers are known offline."""

    def __init__(self, offers: Sequence[Offer], answer: Answer = accepts) -> None:
        super().__init__(answer)
        self.offers = offers

    def known_offers(self, gpu_count: int) -> Sequence[Offer]:
        """The same for every pod."""
        return self.offers


class Shop(Backend):
    """One whose offers only the backend knows."""

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        """Never called: it would need an account."""
        raise AssertionError("asked")


def candidate(backend: Backend, view: AdmittingNode = VIEW) -> AskedBackend:
    """A backend of the test kit's name, whose entry point exists."""
    return AskedBackend("b", "fake", view, cast(Provider, backend))


def report(text: str, *candidates: AskedBackend) -> Report:
    """The report on the first workload of a manifest."""
    manifests = read_manifests(parse_documents("f.yaml", text, []), [])
    return explain(manifests, candidates or (candidate(Backend()),))[0]


def judgement(text: str, one: AskedBackend) -> Judgement:
    """A single backend's answer."""
    return report(text, one).judgements[0]


def deployment(spec: str = "", container: str = "", annotations: str = "{}") -> str:
    """A Deployment with one container."""
    containers = f"containers: [{{name: a, image: 'x:1', {container}}}]"
    template = f"{{metadata: {{annotations: {annotations}}}, spec: {{{containers}, {spec}}}}}"
    return f"kind: Deployment\nmetadata: {{name: d}}\nspec: {{template: {template}}}\n"


def reasons(one: Judgement) -> list[str]:
    """Why not, as text."""
    return [str(problem) for problem in one.reasons]


def test_a_workload_that_a_backend_takes_can_run() -> None:
    """With the request, its notes and the implicit offer."""
    found = report(deployment())

    assert found.can_run
    assert found.judgements[0].request == {"offer": "default", "env": {}}
    assert found.judgements[0].notes == (FieldNote("spec.x", "without effect"),)


def test_one_willing_backend_is_enough() -> None:
    """The other one says why not."""

    def refuse(pod: ResolvedPod, offer: Offer) -> Explanation:
        raise UnsupportedFieldsError([FieldProblem("spec.a", "no"), FieldProblem("spec.b", "no")])

    found = report(deployment(), candidate(Backend(refuse)), candidate(Backend()))

    assert found.can_run
    assert reasons(found.judgements[0]) == ["spec.a: no", "spec.b: no"]
    assert not found.judgements[0].can_run


def test_another_refusal_is_a_reason_too() -> None:
    """With the word that the pod's status would have."""

    def refuse(pod: ResolvedPod, offer: Offer) -> Explanation:
        raise RejectedError("bad image name")

    one = judgement(deployment(), candidate(Backend(refuse)))

    assert reasons(one) == ["spec: Rejected: bad image name"]


def test_a_plugin_that_breaks_is_named() -> None:
    """It does not stop the others."""

    def break_down(pod: ResolvedPod, offer: Offer) -> Explanation:
        raise KeyError("oops")

    found = report(deployment(), candidate(Backend(break_down)), candidate(Backend()))

    assert found.can_run
    assert "failed to explain: KeyError: 'oops'" in reasons(found.judgements[0])[0]


def test_a_provider_that_could_not_be_built_says_why() -> None:
    """The reason is not about a field of the workload."""
    one = judgement(deployment(), AskedBackend("b", "fake", VIEW, None, ("needs --config: k",)))

    assert one.reasons == (FieldProblem("", "needs --config: k"),)


def test_known_offers_are_ranked_as_the_node_would() -> None:
    """The cheapest first; those that refuse the pod are left out."""

    def picky(pod: ResolvedPod, offer: Offer) -> Explanation:
        if offer.id == "b":
            raise UnsupportedFieldsError([FieldProblem("spec", "not on b")])
        return accepts(pod, offer)

    offers = [Offer("a", usd_per_hour=3), Offer("b", usd_per_hour=1), Offer("c", usd_per_hour=2)]

    one = judgement(deployment(), candidate(Catalogue(offers, picky)))

    assert [offer.id for offer in one.offers] == ["c", "a"]
    assert one.request is not None
    assert one.request["offer"] == "c"


def test_wishes_leave_out_what_does_not_fit() -> None:
    """And say so where nothing is left."""
    offers = [Offer("a", usd_per_hour=3), Offer("b", usd_per_hour=1)]
    wish = '{vk-provider.dev/max-price: "2"}'

    some = judgement(deployment(annotations=wish), candidate(Catalogue(offers)))
    none = judgement(deployment(annotations=wish), candidate(Catalogue(offers[:1])))

    assert [offer.id for offer in some.offers] == ["b"]
    assert reasons(none) == [
        "spec: no offer is left: excluded 1 by vk-provider.dev/max-price "
        "(it costs 3 USD/h, at most 2 USD/h is allowed)"
    ]


def test_a_backend_without_a_catalogue_fulfils_no_wish_about_one() -> None:
    """The node would say the same: nobody will ever know its price."""
    wish = '{vk-provider.dev/max-price: "2"}'

    one = judgement(deployment(annotations=wish), candidate(Backend()))

    assert not one.can_run
    assert "excluded 1 by vk-provider.dev/max-price" in reasons(one)[0]


def test_a_price_that_is_unknown_offline_excludes_nothing() -> None:
    """The wish can only be checked later, which is said; so with every fact of an offer."""
    wish = (
        '{vk-provider.dev/max-price: "2", vk-provider.dev/min-gpu-memory: 40Gi, '
        "vk-provider.dev/gpu-types: NVIDIA L40S}"
    )
    gpu = 'resources: {limits: {nvidia.com/gpu: "1"}}'

    one = judgement(
        deployment(container=gpu, annotations=wish), candidate(Catalogue([Offer("any x1")]))
    )

    assert one.can_run
    assert [note.path for note in one.notes] == [
        "spec.x",
        "metadata.annotations[vk-provider.dev/gpu-types]",
        "metadata.annotations[vk-provider.dev/max-price]",
        "metadata.annotations[vk-provider.dev/min-gpu-memory]",
    ]


def test_a_wish_for_backends_counts_where_they_are_configured() -> None:
    """Without a configuration nobody knows their names."""
    wish = deployment(annotations="{vk-provider.dev/backends: other}")
    capacity = {"cpu": "1", "memory": "1Gi", "pods": "1"}

    configured = judgement(wish, candidate(Backend(), AdmittingNode(name="n", capacity=capacity)))

    assert judgement(wish, candidate(Backend())).can_run
    assert reasons(configured) == [
        "spec: no offer is left: excluded 1 by vk-provider.dev/backends (it is b)"
    ]


def test_a_wish_that_can_not_be_read_is_a_reason() -> None:
    """It may be what keeps a bill small."""
    one = judgement(
        deployment(annotations="{vk-provider.dev/max-price: cheap}"), candidate(Backend())
    )

    assert reasons(one)[0].startswith("metadata.annotations[vk-provider.dev/max-price]: found")
    assert not one.can_run


def test_no_offer_at_all_is_a_reason() -> None:
    """A catalogue may be empty for a pod."""
    one = judgement(deployment(), candidate(Catalogue([])))

    assert reasons(one) == ["spec: no backend offers anything for this pod"]


def test_what_the_node_would_refuse_on_arrival_is_a_reason() -> None:
    """Capacity, selector and affinity, where a configuration says what the node is."""
    view = AdmittingNode(name="n", capacity={"cpu": "1", "memory": "1Gi", "pods": "1"})

    large = judgement(
        deployment(container="resources: {limits: {cpu: 4}}"), candidate(Backend(), view)
    )
    picky = judgement(deployment(spec="nodeSelector: {disk: ssd}"), candidate(Backend(), view))

    assert reasons(large)[0].startswith("spec: OutOfcpu: Node didn't have enough resource: cpu")
    assert reasons(picky)[0].startswith("spec: NodeAffinity: Predicate NodeAffinity failed")


def test_without_a_configuration_the_node_refuses_nothing() -> None:
    """Its capacity and labels are unknown."""
    assert judgement(deployment(spec="nodeSelector: {disk: ssd}"), candidate(Backend())).can_run


def test_a_daemonset_runs_nowhere() -> None:
    """Whatever the backends say."""
    found = report(deployment().replace("Deployment", "DaemonSet"))

    assert not found.can_run
    assert "DaemonSetNotSupported" in str(found.obstacle)


def test_a_bare_pod_is_warned() -> None:
    """Nothing will recreate it."""
    pod = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x}]}\n"

    assert "NotRecreated" in report(pod).notes[0]
    assert not any("NotRecreated" in note for note in report(deployment()).notes)


def test_the_dropped_token_volume_is_one_line() -> None:
    """Unless the pod declines it itself."""
    declined = report(deployment(spec="automountServiceAccountToken: false"))

    assert sum("token" in note for note in report(deployment()).notes) == 1
    assert not any("token" in note for note in declined.notes)


@pytest.mark.parametrize(
    ("tolerations", "is_told"),
    [
        ("[]", True),
        ("[{operator: Exists}]", False),
        ("[{key: virtual-kubelet.io/provider, operator: Exists}]", False),
        ("[{key: virtual-kubelet.io/provider, value: vk-provider}]", False),
        ("[{key: other, operator: Exists}]", True),
        ("[7]", True),
    ],
)
def test_a_missing_toleration_is_told_and_not_held_against_it(
    tolerations: str, is_told: bool
) -> None:
    """A workload for home is explained before it is changed."""
    found = report(deployment(spec=f"tolerations: {tolerations}"))

    told = [note for note in found.notes if "tolerations" in note]
    assert bool(told) is is_told
    assert found.can_run
    if told:
        assert "spec.template.spec.tolerations" in told[0]
        assert (
            "{key: virtual-kubelet.io/provider, value: vk-provider, effect: NoSchedule}" in told[0]
        )


def test_who_hands_the_token_on_is_named() -> None:
    """The others drop it."""
    keeper = AskedBackend("keeper", "fake", VIEW, cast("Provider", Backend(hands_on_tokens=True)))

    notes = report(deployment(), keeper).notes

    assert any(note.endswith("is dropped, except on keeper") for note in notes)


def test_probes_that_nobody_runs_are_noted() -> None:
    """Unless the backend runs them or has said so itself."""
    text = deployment(container="livenessProbe: {exec: {command: [x]}}")

    def says_so(pod: ResolvedPod, offer: Offer) -> Explanation:
        note = FieldNote("spec.containers[0].livenessProbe", "ignored")
        return Explanation({}, (note,))

    plain = judgement(text, candidate(Backend()))
    runs = judgement(text, candidate(Backend(runs_probes=True)))
    said = judgement(text, candidate(Backend(says_so)))

    assert plain.notes[1].path == "spec.containers[0].livenessProbe"
    assert len(runs.notes) == 1
    assert len(said.notes) == 1


def test_unseen_objects_are_listed_and_not_held_against_it() -> None:
    """A secret's value appears nowhere."""
    env = "env: [{name: V, valueFrom: {secretKeyRef: {name: s, key: k}}}]"

    found = report(deployment(container=env))

    assert [str(key) for key in found.unseen] == ["Secret default/s"]
    assert found.can_run


def test_a_key_that_a_supplied_object_lacks_is_a_reason() -> None:
    """The pod would wait for it for ever."""
    env = "env: [{name: V, valueFrom: {configMapKeyRef: {name: c, key: k}}}]"
    text = f"{deployment(container=env)}---\nkind: ConfigMap\nmetadata: {{name: c}}\n"

    one = judgement(text, candidate(Backend()))

    assert not one.can_run
    assert "couldn't find key k in ConfigMap default/c" in reasons(one)[0]


def test_services_are_announced_where_they_can_be_reached() -> None:
    """The variables of a node that reaches ClusterIPs; offline there are no Services."""
    assert judgement(deployment(), candidate(Backend(reaches_services=True))).can_run


def test_live_offers_beat_what_is_known_offline() -> None:
    """With prices, wishes about them are checked, and the cheapest comes first."""
    live = (
        Offer("dear", "A100", 1, gpu_memory_gib=80, usd_per_hour=2.0),
        Offer("cheap", "L40S", 1, gpu_memory_gib=48, usd_per_hour=0.9),
        Offer("small", "L4", 1, gpu_memory_gib=24, usd_per_hour=0.4),
    )
    one = replace(candidate(Catalogue([Offer("known", "L4", 1)])), live={1: live})
    wish = "{vk-provider.dev/min-gpu-memory: 40Gi, vk-provider.dev/max-price: '1.0'}"
    gpu = "resources: {limits: {nvidia.com/gpu: 1}}"

    found = judgement(deployment(container=gpu, annotations=wish), one)

    assert [offer.id for offer in found.offers] == ["cheap"]
    assert not [note for note in found.notes if "annotations" in note.path]


def test_a_configured_node_ranks_its_backends_together() -> None:
    """With what is left out, and why; also by a budget that it could never fit into."""
    capacity = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    view = AdmittingNode(name="n", capacity=capacity)
    budget = BudgetLimits(Caps(usd_per_hour=5.0))
    dear, cheap, mad = (Offer(each, usd_per_hour=p) for each, p in (("d", 3), ("c", 1), ("m", 9)))
    candidates = [
        replace(candidate(Catalogue([dear, mad]), view), name="one", budget=budget),
        replace(candidate(Catalogue([cheap]), view), name="two", budget=budget),
    ]
    [ranking] = report(deployment(), *candidates).rankings
    assert [(each.backend, each.offer.id) for each in ranking.candidates] == [
        ("two", "c"),
        ("one", "d"),
    ]
    assert [(each.offer.id, each.message) for each in ranking.refused] == [
        ("m", "the node's budget of 5.00 USD/h has 5.00 left")
    ]


def test_a_rollout_that_would_be_given_up_before_a_start_may_end_is_warned_of() -> None:
    """By what the provider itself says a create may take."""
    slow = Backend()
    slow.traits = replace(slow.traits, create_timeout_seconds=900.0)
    [note] = [each for each in judgement(deployment(), candidate(slow)).notes if not each.path]
    assert "a create may take up to 900 s here" in note.note
    assert "after 600 s: raise spec.progressDeadlineSeconds" in note.note
    assert all(each.path for each in judgement(deployment(), candidate(Backend())).notes)
