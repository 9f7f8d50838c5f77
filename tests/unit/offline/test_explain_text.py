"""Reports as text: what a person reads, line for line."""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import dedent
from types import MappingProxyType
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.offline.explain import AskedBackend, Judgement, Report
from vk_provider.offline.explain_text import render
from vk_provider.offline.node_ranking import NodeRanking
from vk_provider.offline.workloads import Workload, read_manifests
from vk_provider.output import Style
from vk_provider.placement.needs import Exclusion, Refused
from vk_provider.placement.ranking import Policy
from vk_provider.pods.admission import AdmittingNode
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.types import Candidate
from vk_provider.provider import FieldNote, Offer, Stock
from vk_provider.yaml_documents import parse_documents

JOB = "kind: Job\nmetadata: {name: j}\nspec: {template: {spec: {containers: [{name: a}]}}}\n"
CANDIDATE = AskedBackend("runpod", "runpod", AdmittingNode(name="n"), None)
OFFER = Offer("default")


def workload() -> Workload:
    """A Job."""
    return read_manifests(parse_documents("f.yaml", JOB, []), []).workloads[0]


def shown(*judgements: Judgement, ignored: Sequence[str] = (), **report: Any) -> str:
    """The text of one report."""
    return render([Report(workload(), judgements, **report)], ignored, Style(width=70))


def test_a_backend_that_can_shows_its_request() -> None:
    """Price, notes, request; a script line by line."""
    request = {"image": "x", "args": ("a", "b"), "env": MappingProxyType({"S": "one\ntwo\n"})}
    notes = (FieldNote("spec.containers[0].livenessProbe", "not run"),)

    assert shown(Judgement(CANDIDATE, request, (OFFER,), notes)) == dedent(
        """\
        Job default/j  f.yaml:1

          yes  runpod
               price    known only with an account or a simulator, which --online asks
               note  spec.template.spec.containers[0].livenessProbe: not run
               request
                 image: x
                 args:
                 - a
                 - b
                 env:
                   S: |
                     one
                     two

        1 of 1 workload can run on a virtual node."""
    )


def test_a_backend_that_can_not_shows_every_reason() -> None:
    """With the paths of the document; what is not about a field has none."""
    reasons = (FieldProblem("spec.a", "not here"), FieldProblem("", "needs --config"))

    assert shown(Judgement(CANDIDATE, reasons=reasons)) == dedent(
        """\
        Job default/j  f.yaml:1

          no   runpod
               - spec.template.spec.a: not here
               - needs --config

        0 of 1 workload can run on a virtual node."""
    )


def test_a_backend_that_could_not_be_built_is_skipped() -> None:
    """It has not said no."""
    reason = FieldProblem("", "needs --config")
    text = shown(Judgement(replace(CANDIDATE, problems=("needs --config",)), reasons=(reason,)))
    assert "  skip runpod\n       - needs --config\n" in text


def test_what_stops_a_workload_anywhere_is_all_there_is_to_say() -> None:
    """A request below a no would only confuse."""
    text = shown(Judgement(CANDIDATE, {"image": "x"}), notes=("first",), obstacle="nowhere")
    assert text.splitlines()[:3] == ["Job default/j  f.yaml:1", "  no    nowhere", ""]


def test_notes_come_before_the_backends() -> None:
    """What is to be copied stays in one line."""
    text = shown(
        notes=(
            "first\n{copy: this, in: one, piece: even, if: it, is: longer, than: the, line: is}",
        ),
        unseen=(ObjectKey("Secret", "default", "s"),),
        ignored=("Service v", "Ingress w"),
    )

    assert text == dedent(
        """\
        Job default/j  f.yaml:1
          note  first
                  {copy: this, in: one, piece: even, if: it, is: longer, than: the, line: is}
          note  not supplied with -f, so their keys were not checked: Secret
                default/s

        No pod template in: Service v, Ingress w

        0 of 1 workload can run on a virtual node."""
    )


def test_offers_are_a_table() -> None:
    """In the order they are tried, with the price where there is one."""
    offers = (
        Offer("a", "NVIDIA L40S", 1, data_center="EU-1", usd_per_hour=0.86),
        Offer("b", "NVIDIA A40", 2, usd_per_hour=12, stock=Stock.LOW),
        Offer("c", data_center="US-1"),
    )

    lines = shown(Judgement(CANDIDATE, {}, offers)).splitlines()

    assert lines[3:7] == [
        "       offers   in the order they are tried",
        "         1 x NVIDIA L40S in EU-1  0.86 USD/h",
        "         2 x NVIDIA A40           12 USD/h, stock low",
        "         US-1",
    ]


def test_a_long_table_is_cut() -> None:
    """A catalogue has hundreds."""
    offers = tuple(Offer(str(n), f"GPU {n}", 1, usd_per_hour=1) for n in range(20))

    lines = shown(Judgement(CANDIDATE, {}, offers)).splitlines()

    assert lines[12] == "         and 12 more"


def test_a_single_price_stands_alone() -> None:
    """A backend without a catalogue has one."""
    text = shown(Judgement(CANDIDATE, {}, (Offer("default", usd_per_hour=1.5),)))

    assert "       price    1.5 USD/h\n" in text
    assert "offers" not in text


def test_a_configured_backend_names_its_provider_and_node() -> None:
    """Two nodes may have backends of one name."""
    view = AdmittingNode(name="burst", capacity={"cpu": "1"})

    text = shown(Judgement(AskedBackend("secure", "runpod", view, None), {}, (OFFER,)))

    assert "  yes  secure of node burst (runpod)\n" in text


def test_colour_says_the_same() -> None:
    """Only the escape codes differ."""
    text = render([Report(workload(), (Judgement(CANDIDATE, {}, (OFFER,)),))], (), Style(True, 70))

    assert "\x1b[32myes\x1b[0m" in text
    assert "\x1b[32m1 of 1 workload can run on a virtual node.\x1b[0m" in text


def test_a_node_shows_what_it_would_try_in_order_and_what_not() -> None:
    """Position, backend, offer and reason; a choice of one needs no table."""
    offer = Offer("x", gpu_type="L4", gpu_count=1, usd_per_hour=0.5)
    gone = Refused("b", Offer("y"), Exclusion.PRICE, "it costs 4 USD/h")
    one = NodeRanking("n", Policy.CHEAPEST, (Candidate("a", offer, "0.5 USD/h"),), ())
    many = (Candidate("a", Offer(f"o{at}"), "why") for at in range(10))
    text = shown(rankings=(one, NodeRanking("n", Policy.PRIORITY, tuple(many), (gone,))))
    lines = [line for line in text.splitlines() if line.startswith("       ") or "ranking" in line]
    assert lines[0] == "  ranking of node n  priority"
    assert lines[1] == "        1  a: o0  why"
    assert lines[-2] == "        -  b: y   no: it costs 4 USD/h"
    assert lines[-1] == "       and 2 more"
    both = shown(rankings=(NodeRanking("n", Policy.CHEAPEST, one.candidates, (gone,)),))
    assert "        1  a: 1 x L4  0.5 USD/h" in both
