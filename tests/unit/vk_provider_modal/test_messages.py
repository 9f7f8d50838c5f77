"""Modal's messages as facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from grpclib import GRPCError, Status
from modal_proto import api_pb2
from vk_provider_modal.facts import Costs, Result
from vk_provider_modal.messages import (
    cost_request,
    created_name,
    ended_result,
    failure_words,
    group_costs,
    listed_sandbox,
    retry_after,
    terminal_info,
    tunnel_address,
)


def test_an_entry_of_a_list_is_read_in_full() -> None:
    """With what the SDK's own list drops."""
    info = api_pb2.SandboxInfo(
        id="sb-1",
        created_at=5,
        ready_at=7,
        timeout_secs=60,
        tags=[api_pb2.SandboxTag(tag_name="a", tag_value="b")],
        tunnels=[api_pb2.TunnelData(host="h", port=443, container_port=80)],
    )

    found = listed_sandbox(info)

    assert (found.id, found.created_at, found.started_at) == ("sb-1", 5, 7)
    assert (found.tags, found.tunnels) == ({"a": "b"}, {80: "https://h"})
    assert found.result == Result()


def test_a_status_is_a_word_even_if_it_is_strange() -> None:
    """The number then stands for it."""
    killed = api_pb2.GenericResult(
        status=api_pb2.GenericResult.GENERIC_STATUS_KERNEL_OOM_KILL, exception="too much"
    )
    strange = api_pb2.GenericResult.FromString(b"\x08\x63")

    assert ended_result(killed) == Result("KERNEL_OOM_KILL", 0, "too much")
    assert ended_result(strange).status == "status 99"


def test_addresses_are_urls_but_for_plain_tcp() -> None:
    """Which has a host and a port."""
    assert tunnel_address(api_pb2.TunnelData(host="h", port=444)) == "https://h:444"
    plain = api_pb2.TunnelData(host="h", port=443, unencrypted_host="r", unencrypted_port=22)
    assert tunnel_address(plain) == "r:22"


def test_only_what_makes_a_sandbox_has_a_name() -> None:
    """Both kinds of it."""
    definition = api_pb2.Sandbox(name="vk-1")

    assert created_name(api_pb2.SandboxCreateRequest(definition=definition)) == "vk-1"
    assert created_name(api_pb2.SandboxCreateV2Request(definition=definition)) == "vk-1"
    assert created_name(api_pb2.SandboxListRequest()) == ""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (GRPCError(Status.UNAVAILABLE, "gone"), "UNAVAILABLE: gone"),
        (GRPCError(Status.UNKNOWN), "UNKNOWN: no details"),
        (OSError("refused"), "refused"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_failure_says_something(error: Exception, words: str) -> None:
    """At least its name."""
    assert failure_words(error) == words


def test_the_services_wish_is_among_the_details() -> None:
    """Or it has none."""
    details = [object(), api_pb2.RPCRetryPolicy(retry_after_secs=3)]
    wishing = type("Wishing", (Exception,), {"_grpc_details": details})()

    assert retry_after(wishing) == 3
    assert retry_after(OSError()) is None


def test_a_terminal_has_a_size() -> None:
    """Rows and columns are not mixed up."""
    info = terminal_info(132, 43)

    assert SimpleNamespace(rows=info.winsz_rows, columns=info.winsz_cols) == SimpleNamespace(
        rows=43, columns=132
    )


def test_a_bill_is_asked_for_by_tag_and_hour() -> None:
    """The hour under way has no end."""
    hour = datetime(2027, 1, 1, 5, tzinfo=UTC)

    whole = cost_request(Costs("vk.uid", hour, hour + timedelta(hours=1)))
    begun = cost_request(Costs("vk.uid", hour))

    assert list(whole.group_by_tags) == ["vk.uid"]
    assert whole.until.ToDatetime(UTC) - whole.since.ToDatetime(UTC) == timedelta(hours=1)
    assert not begun.HasField("until")


def test_costs_are_exact_and_those_of_nobody_are_left_out() -> None:
    """The text has all the digits, the number is what elder services have."""
    group, value = api_pb2.SandboxStatsGroup, api_pb2.SandboxStatsGroup.TagValue
    page = api_pb2.SandboxGetTimeRangeStatsResponse(
        groups=[
            group(tags={"vk.uid": value(value="a")}, cost=0.1, cost_str="0.12345678"),
            group(tags={"vk.uid": value(value="b")}, cost=0.25),
            group(tags={"vk.uid": value()}, cost=7),
            group(cost=8),
        ]
    )

    assert group_costs(page, "vk.uid") == {"a": 0.12345678, "b": 0.25}
