"""The log query and the way of a line, as a kubelet does both."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vk_provider.pods.types import LogLine, LogOptions
from vk_provider.wire.logs import (
    LINE_BYTES,
    Joint,
    LogPipe,
    LogQueryError,
    Tail,
    parse_log_query,
    parse_time,
    render_log,
    render_time,
)

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def line(second: int, text: str) -> LogLine:
    return LogLine(NOW + timedelta(seconds=second), text.encode())


def test_an_empty_query_asks_for_everything() -> None:
    """Nothing set is the whole log, once."""
    assert parse_log_query({}, NOW) == LogOptions()


def test_every_parameter_is_read() -> None:
    """The names are those of PodLogOptions."""
    query = {
        "follow": "true",
        "previous": "True",
        "timestamps": "1",
        "tailLines": "0",
        "sinceSeconds": "60",
        "limitBytes": "7",
        "stream": "All",
        "unknown": "x",
    }

    options = parse_log_query(query, NOW)

    assert options == LogOptions(True, True, True, 0, NOW - timedelta(minutes=1), 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("false", False), ("FALSE", False), ("0", False), ("", True), ("no", True)],
)
def test_only_false_and_zero_are_false(text: str, expected: bool) -> None:
    """The API machinery takes every other value for true."""
    assert parse_log_query({"follow": text}, NOW).follow is expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"tail": "5"}, 5),
        ({"tail": "all", "tailLines": "3"}, None),
        ({"tail": "", "tailLines": "3"}, 3),
        ({"tail": "4", "tailLines": "3"}, 4),
    ],
)
def test_the_legacy_tail_wins(query: dict[str, str], expected: int | None) -> None:
    """Old clients say ``tail``, and ``all`` for no tail."""
    assert parse_log_query(query, NOW).tail_lines == expected


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "x"},
        {"tailLines": ""},
        {"tail": "many"},
        {"limitBytes": "1.5"},
        {"sinceSeconds": "9223372036854775808"},
        {"sinceTime": "yesterday"},
        {"sinceTime": "2026-13-40T00:00:00Z"},
    ],
)
def test_what_can_not_be_read_is_400(query: dict[str, str]) -> None:
    """The message names the parameter."""
    with pytest.raises(LogQueryError, match=next(iter(query))) as caught:
        parse_log_query(query, NOW)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "-1"},
        {"limitBytes": "0"},
        {"sinceSeconds": "0"},
        {"stream": "Stdout"},
        {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"},
    ],
)
def test_what_makes_no_sense_is_422(query: dict[str, str]) -> None:
    """Readable, but not allowed."""
    with pytest.raises(LogQueryError, match=next(iter(query))) as caught:
        parse_log_query(query, NOW)
    assert caught.value.status == 422


def test_all_senseless_parameters_are_named_at_once() -> None:
    """Nobody should have to ask twice."""
    with pytest.raises(LogQueryError) as caught:
        parse_log_query({"tailLines": "-2", "limitBytes": "-3"}, NOW)
    assert "tailLines: -2" in str(caught.value)
    assert "limitBytes: -3" in str(caught.value)


def test_since_before_all_times_is_the_beginning() -> None:
    """A very long ago is no error."""
    assert parse_log_query({"sinceSeconds": str(2**62)}, NOW).since == datetime.min.replace(
        tzinfo=UTC
    )


@pytest.mark.parametrize("text", ["", "null"])
def test_an_empty_since_time_is_none(text: str) -> None:
    """As the API machinery reads it."""
    assert parse_log_query({"sinceTime": text}, NOW).since is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-04T05:06:07Z", NOW),
        ("2026-03-04T07:06:07+02:00", NOW),
        ("2026-03-04T05:06:07.123456789Z", NOW + timedelta(microseconds=123456)),
        ("2026-03-04T05:06:07.5Z", NOW + timedelta(milliseconds=500)),
    ],
)
def test_times_of_rfc_3339_are_read(text: str, expected: datetime) -> None:
    """With any fraction and any zone."""
    assert parse_time(text) == expected


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_rendered_time_is_read_back(moment: datetime) -> None:
    """kubectl's --since-time takes what --timestamps printed."""
    assert parse_time(render_time(moment)) == moment


def test_a_time_has_nine_digits() -> None:
    """So that lines can be sorted as text."""
    assert render_time(NOW) == "2026-03-04T05:06:07.000000000Z"


def test_since_then_tail_then_limit() -> None:
    """The order in which a kubelet applies them."""
    lines = [line(0, "old"), line(1, "one"), line(2, "two"), line(3, "three")]
    options = LogOptions(tail_lines=2, since=NOW + timedelta(seconds=1), limit_bytes=6)

    assert render_log(lines, options) == b"two\nth"


def test_timestamps_count_against_the_limit() -> None:
    """The limit is of what is sent."""
    rendered = render_log([line(0, "a")], LogOptions(timestamps=True, limit_bytes=31))
    assert rendered == b"2026-03-04T05:06:07.000000000Z "


def test_a_tail_of_nothing_is_nothing() -> None:
    """Zero is legal."""
    assert render_log([line(0, "a")], LogOptions(tail_lines=0)) == b""


def test_a_full_pipe_gives_nothing_more() -> None:
    """After the limit the reader may stop."""
    pipe = LogPipe(LogOptions(limit_bytes=1))
    assert pipe.feed(line(0, "abc")) == b"a"
    assert pipe.is_full
    assert pipe.feed(line(0, "abc")) == b""


def test_a_pipe_drops_lines_before_since() -> None:
    """Also those of a backend that does not filter."""
    pipe = LogPipe(LogOptions(since=NOW))
    assert pipe.feed(line(-1, "x")) == b""
    assert pipe.feed(line(0, "y")) == b"y\n"


@pytest.mark.parametrize(
    "options",
    [
        LogOptions(follow=True),
        LogOptions(timestamps=True),
        LogOptions(limit_bytes=7),
        LogOptions(since=NOW + timedelta(seconds=1)),
    ],
)
def test_many_lines_are_as_one_by_one(options: LogOptions) -> None:
    """The short way of a plain follow gives the same bytes."""
    lines = [line(0, "one"), line(1, ""), line(2, "two")]
    alone, together = LogPipe(options), LogPipe(options)

    assert together.feed_all(lines) == b"".join(alone.feed(each) for each in lines)
    assert together.feed_all([]) == b""
    assert together.is_full == alone.is_full


def test_a_tail_is_bounded_by_bytes() -> None:
    """Of a tail larger than memory allows, the newest lines stay."""
    tail = Tail(100, max_bytes=5 + 2 * LINE_BYTES)
    for second, text in enumerate(("aaa", "bbb", "cc")):
        tail.push(line(second, text))
    assert [entry.text for entry in tail.lines] == [b"bbb", b"cc"]
    for second in range(10):
        tail.push(line(second, ""))
    assert len(tail.lines) == 2  # an empty line takes room, too


def test_a_joint_drops_what_was_read_before() -> None:
    """Lines of the last moment come twice, and a new one of the same moment once."""
    joint = Joint()
    for entry in (line(0, "a"), line(1, "b"), line(1, "b")):
        joint.note(entry)

    again = [line(0, "a"), line(1, "b"), line(1, "b"), line(1, "b"), line(1, "c"), line(2, "d")]

    assert [joint.is_new(entry) for entry in again] == [False, False, False, True, True, True]
    assert joint.last == NOW + timedelta(seconds=1)


def test_a_joint_without_a_first_read_drops_nothing() -> None:
    """A container that had printed nothing."""
    assert Joint().is_new(line(0, "a"))


def test_a_joint_keeps_to_the_newest_moment() -> None:
    """A line out of order does not move it back."""
    joint = Joint()
    joint.note(line(2, "b"))
    joint.note(line(1, "a"))
    assert joint.last == NOW + timedelta(seconds=2)


@given(
    st.lists(st.binary(max_size=9), max_size=20),
    st.none() | st.integers(0, 30),
    st.none() | st.integers(1, 60),
)
def test_the_answer_is_a_cut_of_the_last_lines(
    texts: list[bytes], tail: int | None, limit: int | None
) -> None:
    """For every tail and every limit."""
    lines = [LogLine(NOW, text) for text in texts]
    chosen = texts if tail is None else texts[max(0, len(texts) - tail) :]
    whole = b"".join(text + b"\n" for text in chosen)

    assert render_log(lines, LogOptions(tail_lines=tail, limit_bytes=limit)) == whole[:limit]
