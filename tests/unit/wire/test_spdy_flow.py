"""Windows that hold only for peers that keep them, and a bound on what nobody has read."""

from vk_provider.wire.spdy_flow import (
    CONNECTION,
    INITIAL_WINDOW,
    MAX_WINDOW,
    SendWindows,
    Unread,
    UnreadLimits,
)

LIMITS = UnreadLimits(
    pause_stream_bytes=40_000,
    max_stream_bytes=80_000,
    pause_total_bytes=60_000,
    max_total_bytes=100_000,
)


def windows(*streams: int) -> SendWindows:
    made = SendWindows()
    for stream_id in streams:
        made.open(stream_id)
    return made


def unread(*streams: int) -> Unread:
    made = Unread(LIMITS)
    for stream_id in streams:
        made.open(stream_id)
    return made


def test_a_peer_that_keeps_no_windows_is_never_waited_for() -> None:
    """moby/spdystream sends no WINDOW_UPDATE: waiting for one would hang after 64 KiB."""
    sending = windows(1)

    sending.sent(1, 10 * INITIAL_WINDOW)

    assert sending.room(1) == MAX_WINDOW


def test_what_was_sent_counts_once_a_peer_keeps_windows() -> None:
    """Its first WINDOW_UPDATE shows that it counted from the start."""
    sending = windows(1)
    sending.sent(1, INITIAL_WINDOW)

    assert sending.widen(1, 100)
    assert sending.room(1) == 0
    assert sending.widen(CONNECTION, 50)
    assert sending.room(1) == 50


def test_an_update_of_nothing_or_of_too_much_is_refused() -> None:
    """3.1 calls both a fault; for a stream that is over it does not matter."""
    sending = windows(1)

    assert not sending.widen(1, 0)
    assert not sending.widen(CONNECTION, MAX_WINDOW)
    assert sending.widen(99, MAX_WINDOW)


def test_the_initial_window_moves_every_stream_and_not_the_connection() -> None:
    """It may even make a window negative, which is no room."""
    sending = windows(1)
    sending.sent(1, 1000)

    assert sending.set_initial(500)
    assert sending.room(1) == 0
    assert sending.set_initial(2000)
    assert sending.room(1) == 1000
    sending.open(3)
    assert sending.room(3) == 2000
    assert not sending.set_initial(MAX_WINDOW + 1)


def test_a_stream_that_is_over_has_no_room() -> None:
    """Where windows are kept."""
    sending = windows(1)
    sending.widen(CONNECTION, 1)

    sending.close(1)

    assert sending.room(1) == 0


def test_reading_pauses_while_a_stream_is_full_and_goes_on_when_it_was_read() -> None:
    """The shell stops reading the transport; nothing is lost."""
    reading = unread(1)

    assert reading.received(1, 50_000)
    assert reading.paused
    reading.consumed(1, 20_000)
    assert not reading.paused


def test_reading_pauses_when_all_streams_together_have_too_much() -> None:
    """Many small ones are as heavy as a large one."""
    reading = unread(1, 3)

    reading.received(1, 35_000)
    reading.received(3, 35_000)

    assert reading.paused
    assert not reading.overflown


def test_a_shell_that_reads_on_meets_the_upper_marks() -> None:
    """Bounded memory whatever the shell does."""
    reading = unread(1, 3)

    assert not reading.received(1, 80_001)
    assert not reading.overflown
    reading.received(3, 20_000)
    assert reading.overflown


def test_a_stream_that_was_reset_holds_nothing() -> None:
    """Nobody will consume it."""
    reading = unread(1)
    reading.received(1, 50_000)

    reading.forget(1)

    assert not reading.paused
    assert reading.take_updates() == [(CONNECTION, 50_000)]


def test_a_stream_that_ended_holds_its_bytes_until_they_are_read() -> None:
    """But its own window needs no update any more."""
    reading = unread(1)
    reading.received(1, 50_000)

    reading.settle(1)

    assert reading.paused
    reading.consumed(1, MAX_WINDOW)
    assert not reading.paused
    assert reading.take_updates() == [(CONNECTION, 50_000)]


def test_windows_are_given_back_in_worthwhile_pieces() -> None:
    """Not a frame for each byte."""
    reading = unread(1)
    reading.received(1, 20_000)

    reading.consumed(1, 10_000)
    early = reading.take_updates()
    reading.consumed(1, 10_000)

    assert early == []
    assert reading.take_updates() == [(CONNECTION, 20_000), (1, 20_000)]
    assert reading.take_updates() == []


def test_bytes_that_nobody_takes_give_back_the_connection_alone() -> None:
    """Data for closed streams is dropped, and counts."""
    reading = unread()

    reading.dropped(20_000)

    assert reading.take_updates() == [(CONNECTION, 20_000)]
