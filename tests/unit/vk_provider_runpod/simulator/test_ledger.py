"""The bill."""

from __future__ import annotations

import json

import pytest
from vk_provider_runpod.simulator.ledger import Charge, DoubleBilling, Ledger
from vk_provider_runpod.stamp import stamp_env

from vk_provider.testing.builders import make_stamp

OWNER = stamp_env(make_stamp(), "main")


def test_a_meter_runs_from_open_to_close() -> None:
    """And knows who pays."""
    ledger = Ledger()
    ledger.open("a", "compute", 3.6, 100, OWNER)
    (running,) = ledger.open_intervals()
    ledger.close("a", 200)

    assert (running.pod_uid, running.pod) == (make_stamp().pod_uid, "default/app-1")
    assert (running.cluster_id, running.node_name) == ("cluster-1", "node-1")
    assert ledger.open_intervals() == []
    assert ledger.usd(500) == pytest.approx(0.1)


def test_a_second_kind_of_charge_ends_the_first() -> None:
    """A stopped instance pays for its disk only."""
    ledger = Ledger()
    ledger.open("a", "compute", 1.0, 100, OWNER)
    ledger.open("a", "storage", 0.1, 150, OWNER)

    assert [(each.kind, each.end) for each in ledger.charges] == [
        ("compute", 150),
        ("storage", None),
    ]
    assert ledger.double_billed() == []


def test_every_second_says_who_paid() -> None:
    """The end belongs to nobody."""
    ledger = Ledger()
    ledger.open("a", "compute", 1.0, 100, OWNER)
    ledger.close("a", 200)

    assert [len(ledger.at(moment)) for moment in (99, 100, 199.9, 200)] == [0, 1, 1, 0]


def test_two_instances_of_one_pod_at_once_are_told() -> None:
    """With how long; one after the other is no double billing, nor is a stranger's."""
    ledger = Ledger()
    ledger.open("a", "compute", 1.0, 100, OWNER)
    ledger.open("b", "compute", 1.0, 150, OWNER)
    ledger.close("a", 160)
    ledger.close("b", 170)
    ledger.open("c", "compute", 1.0, 170, OWNER)
    ledger.open("d", "compute", 1.0, 100, {})
    ledger.open("e", "compute", 1.0, 100, {})

    assert ledger.double_billed() == [DoubleBilling(make_stamp().pod_uid, ("a", "b"), 10)]


def test_the_report_is_json_while_meters_run() -> None:
    """An overlap that goes on has no number yet."""
    ledger = Ledger()
    ledger.open("a", "compute", 1.0, 100, OWNER)
    ledger.open("b", "compute", 1.0, 150, OWNER)

    report = json.loads(json.dumps(ledger.report(200)))

    assert report["doubleBilled"][0]["seconds"] is None
    assert len(report["open"]) == 2


def test_closing_what_is_not_open_changes_nothing() -> None:
    """A delete may come twice."""
    ledger = Ledger()

    ledger.close("a", 1)

    assert ledger.charges == []
    assert Charge("a", "compute", 1.0, 5).seconds(3) == 0
