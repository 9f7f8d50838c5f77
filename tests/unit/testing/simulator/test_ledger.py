"""The bill."""

from __future__ import annotations

import json

import pytest

from vk_provider.testing.simulator.ledger import Charge, DoubleBilling, Ledger, Owner

OURS = Owner("uid-1", "cluster-1", "node-1", "default/app-1")


def billed(*charges: Charge) -> Ledger[Charge]:
    """A ledger with meters that were started in this order."""
    ledger: Ledger[Charge] = Ledger()
    for charge in charges:
        ledger.open(charge)
    return ledger


def test_a_meter_runs_from_open_to_close() -> None:
    """Closing once more changes nothing."""
    ledger = billed(Charge("a", 3.6, 100, OURS))
    (running,) = ledger.open_intervals()
    ledger.close("a", 200)
    ledger.close("a", 300)

    assert (running.owner, running.end) == (OURS, 200)
    assert ledger.open_intervals() == []
    assert ledger.usd(500) == pytest.approx(0.1)


def test_a_second_meter_of_an_instance_ends_the_first() -> None:
    """Who pays for its disk only does not pay twice."""
    ledger = billed(Charge("a", 1.0, 100, OURS), Charge("a", 0.1, 150, OURS))

    assert [each.end for each in ledger.charges] == [150, None]
    assert ledger.double_billed() == []


def test_two_instances_of_one_pod_at_once_are_told() -> None:
    """With how long; one after the other is no double billing, nor is a stranger's."""
    ledger = billed(Charge("a", 1.0, 100, OURS), Charge("b", 1.0, 150, OURS))
    ledger.close("a", 160)
    ledger.close("b", 170)
    for later in (Charge("c", 1.0, 170, OURS), Charge("d", 1.0, 100), Charge("e", 1.0, 100)):
        ledger.open(later)

    assert ledger.double_billed() == [DoubleBilling("uid-1", ("a", "b"), 10)]


def test_the_report_is_json_while_meters_run() -> None:
    """An overlap that goes on has no number yet."""
    ledger = billed(Charge("a", 3.6, 0, OURS), Charge("b", 3.6, 0, OURS))

    report = json.loads(json.dumps(ledger.report(1000)))

    assert report["doubleBilled"][0]["seconds"] is None
    assert len(report["open"]) == len(report["charges"]) == 2
    assert report["usd"] == 2.0


@pytest.mark.parametrize(
    ("charge", "usd"),
    [
        (Charge("a", 3600, 10), 10),
        (Charge("a", 3600, 0, end=15), 5),
        (Charge("a", 3600, 0, end=5), 0),
        (Charge("a", 3600, 30), 0),
    ],
)
def test_a_charge_tells_what_it_cost_from_one_moment_to_another(charge: Charge, usd: float) -> None:
    """As services bill: by day or hour. Here from 10 to 20."""
    assert charge.usd_within(10, 20) == usd
    assert charge.seconds(-1) >= 0


def test_an_owner_is_read_from_where_the_stamp_stands() -> None:
    """In whatever words; a stranger's is empty."""
    keys = ("uid", "cluster", "node", "namespace", "pod")
    marks = dict(zip(keys, ("uid-1", "cluster-1", "node-1", "default", "app-1"), strict=True))

    assert Owner.marked(marks, keys) == OURS
    assert Owner.marked({}, keys) == Owner()
