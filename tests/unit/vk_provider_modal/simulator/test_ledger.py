"""The bill."""

from __future__ import annotations

from vk_provider_modal.simulator.ledger import Ledger, Owner

OURS = Owner("uid-1", "cluster-1", "node-1", "default/app-1")


def test_two_meters_for_one_pod_are_found() -> None:
    """With the seconds that both of them ran."""
    ledger = Ledger()
    ledger.open("a", 3.6, 0, OURS)
    ledger.open("b", 3.6, 5, OURS)
    ledger.open("c", 3.6, 5, Owner())
    ledger.close("a", 10)
    ledger.close("none", 10)

    (double,) = ledger.double_billed()

    assert (double.instances, double.seconds) == (("a", "b"), 5)
    assert [charge.instance for charge in ledger.at(7)] == ["a", "b", "c"]
    assert [charge.instance for charge in ledger.open_intervals()] == ["b", "c"]


def test_the_report_is_json() -> None:
    """Also where both meters still run."""
    ledger = Ledger()
    ledger.open("a", 3.6, 0, OURS)
    ledger.open("b", 3.6, 0, OURS)

    report = ledger.report(1000)

    assert report["usd"] == 2.0
    assert report["doubleBilled"][0]["seconds"] is None
    assert len(report["open"]) == len(report["charges"]) == 2
