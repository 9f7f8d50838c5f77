"""What a scoring self-test says, and the probes it says it of."""

from dataclasses import replace
from fractions import Fraction

from vk_provider.bursting import names
from vk_provider.bursting.checkup import Level
from vk_provider.bursting.scoring import Place, Score, Verdict
from vk_provider.bursting.scoring_advice import (
    ABSENT_CONFIG_MAP,
    Scoring,
    advise,
    generic_sample,
    probe,
)
from vk_provider.taints import tolerates

GPUS = {"nvidia.com/gpu": "1"}
SAMPLE = generic_sample({}, GPUS)
SOFT = {"key": names.PREFER_HOME_TAINT, "effect": "PreferNoSchedule"}
HOME = Place("home", False, {"cpu": Fraction(32)}, {}, {}, (), {})
OUTSIDE = Place(
    "burst", True, {"cpu": Fraction(64)}, {}, {"topology.kubernetes.io/zone": "o"}, (SOFT,), {}
)
GOOD = Scoring(
    SAMPLE, (HOME, OUTSIDE), {"home": 3}, verdict=Verdict("home", "burst", (Score("T", 500, 0),))
)


def said(found: Scoring, level: Level) -> list[str]:
    """What is said on this level."""
    return [f"{one.subject}: {one.what}" for one in advise(found) if one.level is level]


def test_a_good_cluster_has_nothing_to_repair() -> None:
    """Home won and would win."""
    assert said(GOOD, Level.ERROR) == said(GOOD, Level.WARNING) == []
    assert said(GOOD, Level.OK) == [
        "scheduler: all 3 probes went home",
        "arithmetic: home is ahead by 500, 300 in the worst case",
    ]


def test_probes_that_went_outside_are_an_error() -> None:
    """Counted per node."""
    lost = replace(GOOD, went={"home": 2, "burst": 1})

    assert said(lost, Level.ERROR) == [
        "scheduler: 1 of 3 probes went outside although home had room: 1 to burst"
    ]


def test_without_room_or_a_place_only_the_arithmetic_is_told() -> None:
    """And why a probe found none."""
    full = replace(GOOD, went={}, stuck=["0/2 nodes", "0/2 nodes"])

    assert said(full, Level.WARNING) == ["scheduler: a probe found no place at all: 0/2 nodes"]
    assert any("no room for a probe" in one for one in said(full, Level.NOTE))
    alone = replace(GOOD, verdict=None)
    assert any("nothing competes" in one for one in said(alone, Level.NOTE))


def test_a_margin_that_spreading_can_eat_is_a_warning() -> None:
    """One that is not there is an error."""
    thin = replace(GOOD, verdict=Verdict("home", "burst", (Score("T", 150, 0),)))
    none = replace(GOOD, verdict=Verdict("home", "burst", (Score("T", 0, 90),)))

    assert said(thin, Level.WARNING) == [
        "arithmetic: home is ahead by 150, but spreading replicas may give outside up to 200"
    ]
    assert said(none, Level.ERROR) == ["arithmetic: outside is ahead by 90"]


def test_a_pod_without_a_preference_is_told() -> None:
    """And one that tolerates the soft taint."""
    spec = {"tolerations": [{"operator": "Exists"}], "containers": []}
    bare = replace(GOOD, sample={"metadata": {"name": "p", "namespace": "web"}, "spec": spec})

    assert said(bare, Level.WARNING)[0].startswith("web/p: has no preferred node affinity")
    assert said(bare, Level.ERROR) == [
        "web/p: tolerates vk-provider.dev/prefer-home: nothing makes it prefer home"
    ]


def test_a_node_that_draws_pods_is_told() -> None:
    """No soft taint, images, a giant's size, no zone."""
    giant = Place("burst", True, {"cpu": Fraction(320)}, {}, {}, (), {"a:1": 1})

    found = replace(GOOD, places=(HOME, giant))

    assert [one.partition(",")[0] for one in said(found, Level.WARNING)] == [
        "burst: has no taint vk-provider.dev/prefer-home",
        "burst: advertises 1 images",
        "burst: advertises 10 times the cpu of the largest home node: an empty giant scores best",
    ]
    assert "burst: has no label topology.kubernetes.io/zone: spreading counts it to no zone" in (
        said(found, Level.NOTE)
    )


def test_a_probe_can_be_placed_and_never_started() -> None:
    """Past gate and door, without a label that a ReplicaSet or the webhook would take it by."""
    made = probe(SAMPLE, "p", "default", GPUS)
    spec = made["spec"]

    assert made["metadata"]["labels"][names.BURST_LABEL] == "false"
    assert spec["volumes"][0]["configMap"] == {"name": ABSENT_CONFIG_MAP}
    assert spec["containers"][0]["volumeMounts"][0]["name"] == "never"
    assert spec["containers"][0]["imagePullPolicy"] == "Never"
    assert spec["affinity"] == SAMPLE["spec"]["affinity"]
    closed = [
        {"key": names.GATE_TAINT, "value": "hold", "effect": "NoSchedule"},
        {"key": names.UNAVAILABLE_TAINT, "value": "capacity", "effect": "NoSchedule"},
        {"key": names.PROVIDER_TAINT, "value": "vk-provider", "effect": "NoSchedule"},
    ]
    assert all(any(tolerates(one, taint) for one in spec["tolerations"]) for taint in closed)


def test_a_probe_asks_for_what_its_sample_asks() -> None:
    """Or for a GPU where that says nothing; a named pool is preferred by its labels."""
    bare = {"spec": {"containers": [{"name": "c", "image": "i"}]}}

    assert probe(bare, "p", "d", GPUS)["spec"]["containers"][0]["resources"] == {"limits": GPUS}
    pool = generic_sample({"pool": "home"}, GPUS)["spec"]["affinity"]["nodeAffinity"]
    term = pool["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"]
    assert term["matchExpressions"] == [{"key": "pool", "operator": "In", "values": ["home"]}]
