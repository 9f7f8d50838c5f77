"""A thousand things that no client should send, the same ones every time.

Feeds the test of malformed requests.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

from tests.unit.wire.peer import FIN, Peer, control, data, rst, settings, window, words

COUNT = 1_000
EXEC = "/exec/ns/p/c?command=x&input=1&output=1&error=1"
ROUTES = (
    "/pods",
    "/healthz/ping",
    "/containerLogs/ns/p/c",
    EXEC,
    "/attach/ns/p/c?output=1",
    "/portForward/ns/p",
    "/stats/summary",
    "/metrics/resource",
    "/logs/",
)
SPLICES = (
    b"%", b"%zz", b"%00", b"\x00", b"/../..", b"//", b"\xff\xfe", b"?", b"&&=", b"#", b" ",
    b"\r", b"\n", b"%2f", b"{uid}", b"\xe2\x82", b";", b"=1&tailLines=-1", b"&sinceTime=x",
)  # fmt: skip
HEADERS = (
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: 5",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked, chunked\r\nContent-Length: 3",
    b"Connection: Upgrade\r\nUpgrade: websocket",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 99",
    b"Connection: Upgrade\r\nUpgrade: SPDY/3.1",
    b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ,,,",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x",
    b"Expect: 100-continue\r\nContent-Length: 10",
    b"Authorization: Bearer \xff\xfe",
    b": no name",
    b"No colon",
    b"X\x00Y: z",
    b"Accept-Encoding: \x7f\r\n folded",
    b"Host: a\r\nHost: b",
    b"X-Long: " + b"y" * 17_000,
)
METHODS = (
    b"GET",
    b"POST",
    b"PUT",
    b"get",
    b"G\x00T",
    b"CONNECT",
    b"PRI",
    b"OPTIONS",
    b"",
    b"X" * 40,
)
UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    b"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
    b"X-Stream-Protocol-Version: portforward.k8s.io"
)
WEBSOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: " + base64.b64encode(bytes(16)) + b"\r\nSec-WebSocket-Protocol: %s"
)
SUBPROTOCOLS = (
    b"v5.channel.k8s.io",
    b"v4.base64.channel.k8s.io",
    b"channel.k8s.io",
    b"SPDY/3.1+portforward.k8s.io",
)


def requests(seed: int = 1) -> Iterator[bytes]:
    """COUNT byte strings, each for a TLS connection of its own."""
    chance = random.Random(seed)
    makers = (_path, _headers, _noise, _spdy, _websocket)
    for number in range(COUNT):
        yield makers[number % len(makers)](chance)


def _head(method: bytes, path: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join([method + b" " + path + b" HTTP/1.1", b"Host: n", *lines, b"", b""])


def _path(chance: random.Random) -> bytes:
    path = bytearray(chance.choice(ROUTES).encode())
    for _ in range(chance.randint(1, 4)):
        place = chance.randint(0, len(path))
        path[place:place] = chance.choice(SPLICES)
    return _head(chance.choice(METHODS[:2]), bytes(path))


def _headers(chance: random.Random) -> bytes:
    lines = chance.sample(HEADERS, chance.randint(1, 3))
    path = chance.choice(ROUTES).encode()
    return _head(chance.choice(METHODS), path, *lines) + chance.randbytes(chance.randint(0, 40))


def _noise(chance: random.Random) -> bytes:
    whole = _head(b"GET", chance.choice(ROUTES).encode(), b"Accept: */*")
    broken = bytearray(whole)
    for _ in range(chance.randint(1, 6)):
        broken[chance.randrange(len(broken))] = chance.randrange(256)
    return chance.choice((bytes(broken), chance.randbytes(200), whole[: chance.randrange(40)]))


def _frames(chance: random.Random) -> bytes:
    """Frames of a client in any order, some of them broken, perhaps cut off in the middle."""
    peer, raw = Peer(), b""
    for number in range(1, chance.randint(2, 12)):
        kind = chance.choice(("error", "stdin", "stdout", "stderr", "data", "resize", "x"))
        stream_id = chance.choice((2 * number - 1, 2 * number, 1, 0))
        raw += chance.choice(
            (
                peer.syn(stream_id, 0, streamtype=kind, port="80", requestid="0"),
                data(stream_id, chance.randbytes(chance.randint(0, 300)), chance.choice((0, FIN))),
                rst(stream_id),
                window(stream_id, chance.choice((0, 1, 0x7FFFFFFF))),
                settings((7, chance.choice((0, 0xFFFFFFFF)))),
                control(chance.randint(0, 12), chance.randbytes(chance.randint(0, 30))),
                control(1, words(stream_id, 0) + b"\0\0" + chance.randbytes(20)),
                b"\x80\x03\x00\x01\xff\xff\xff\xff",
                chance.randbytes(chance.randint(1, 60)),
            )
        )
    return raw[: chance.randint(1, len(raw))]


def _spdy(chance: random.Random) -> bytes:
    path = chance.choice((EXEC, "/attach/ns/p/c?output=1", "/portForward/ns/p")).encode()
    return _head(b"POST", path, UPGRADE, b"Content-Length: 0") + b"\0UPGRADED\0" + _frames(chance)


def _websocket(chance: random.Random) -> bytes:
    protocol = chance.choice(SUBPROTOCOLS)
    path = b"/portForward/ns/p" if b"port" in protocol else EXEC.encode()
    payload = chance.choice(
        (_frames(chance), chance.randbytes(chance.randint(0, 120)), b"\xff\x07")
    )
    frame = bytes([chance.choice((0x82, 0x81, 0x80, 0x02, 0x88, 0x89, 0xF2, 0x83))])
    size = chance.choice((len(payload), len(payload) + 5, 127, 0))
    frame += bytes([0x80 | min(size, 125) if chance.random() < 0.8 else min(size, 127)])
    frame += bytes(4) + payload
    return _head(b"GET", path, WEBSOCKET % protocol) + b"\0UPGRADED\0" + frame
