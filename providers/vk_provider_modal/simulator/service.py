"""How every call is served: recorded, authenticated, perhaps met by a scripted fault, answered.

Fed by gRPC; runs the work of ``control`` and ``router``. Whatever is not in their tables is
answered UNIMPLEMENTED, as a server without it would.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import StatusDetailsCodecBase
from modal_proto import api_pb2

from vk_provider.testing.simulator.state import CallRecord
from vk_provider_modal.simulator.faults import LIST, Fault
from vk_provider_modal.simulator.model import RefusalError
from vk_provider_modal.simulator.state import State

Work = Callable[[State, Any], Awaitable[Message]]
StreamedWork = Callable[[State, Any], AsyncIterator[Message]]
Serve = Callable[[Any], Awaitable[None]]
RATE_WORDS = "Sandbox creation rate limit exceeded"
_CREATES = ("SandboxCreate", "SandboxCreateV2")


class NoAnswerError(Exception):
    """The connection was closed instead of an answer."""


class DetailsCodec(StatusDetailsCodecBase):
    """Puts a retry policy beside a status, in the service's own envelope."""

    def encode(
        self, status: Status, message: str | None, details: Sequence[Message] | None
    ) -> bytes:
        """The envelope with every detail in it."""
        envelope = api_pb2.RPCStatus(code=status.value, message=message or "")
        for detail in details or ():
            envelope.details.add().Pack(detail, type_url_prefix="type.modal.com/")
        encoded: bytes = envelope.SerializeToString()
        return encoded

    def decode(self, status: Status, message: str | None, data: bytes) -> Any:
        """Nobody sends details to a server."""
        raise NotImplementedError("the simulator receives no details")


@dataclass(frozen=True, slots=True)
class Servable:
    """A gRPC service of which some methods are served."""

    state: State
    descriptor: ServiceDescriptor
    unary: Mapping[str, Work]
    streamed: Mapping[str, StreamedWork]

    def __mapping__(self) -> dict[str, Handler]:
        """What grpclib asks of a service: how each path is served."""
        found: dict[str, Handler] = {}
        for name, work in self.unary.items():
            serve = _one(self.state, name, work)
            found |= self._entry(name, serve, Cardinality.UNARY_UNARY)
        for name, streamed in self.streamed.items():
            serve = _many(self.state, name, streamed)
            found |= self._entry(name, serve, Cardinality.UNARY_STREAM)
        return found

    def _entry(self, name: str, serve: Serve, cardinality: Cardinality) -> dict[str, Handler]:
        method = self.descriptor.methods_by_name[name]
        asked = message_factory.GetMessageClass(method.input_type)
        answered = message_factory.GetMessageClass(method.output_type)
        path = f"/{self.descriptor.full_name}/{name}"
        return {path: Handler(serve, cardinality, asked, answered)}


def _one(state: State, name: str, work: Work) -> Serve:
    async def serve(stream: Any) -> None:
        request = await stream.recv_message()
        if request is None:
            return
        record = state.record(name)
        try:
            answer = await _answered(state, record, stream, request, work)
            await stream.send_message(answer)
            record.answered_at, record.status = state.clock.now(), "OK"
        except RefusalError as refusal:
            record.status = refusal.status
            raise GRPCError(Status[refusal.status], refusal.detail, refusal.details) from None
        except NoAnswerError:
            # The far side sees a connection that broke off in the middle.
            stream._stream._transport.abort()

    return serve


def _many(state: State, name: str, work: StreamedWork) -> Serve:
    async def serve(stream: Any) -> None:
        request = await stream.recv_message()
        if request is None:
            return
        record = state.record(name)
        try:
            _authenticate(state, stream)
            async for answer in work(state, request):
                await stream.send_message(answer)
        except RefusalError as refusal:
            record.status = refusal.status
            raise GRPCError(Status[refusal.status], refusal.detail) from None
        record.answered_at, record.status = state.clock.now(), "OK"

    return serve


async def _answered(
    state: State, record: CallRecord, stream: Any, request: Any, work: Work
) -> Message:
    _authenticate(state, stream)
    facts = _facts(record.operation, request)
    record.pod_uid = facts.get("uid")
    fault = state.faults.draw(record.operation.removesuffix("V2"), facts)
    record.fault = None if fault is None else fault.kind
    if fault is None:
        return await _worked(state, record, stream, request, work)
    if fault.kind in ("garbage", "empty-list"):
        return _hollow(fault.kind, stream)
    if fault.is_after:
        answer = await _worked(state, record, stream, request, work)
        await _misfortune(state, fault)
        return answer
    await _misfortune(state, fault)
    return await _worked(state, record, stream, request, work)


async def _worked(
    state: State, record: CallRecord, stream: Any, request: Any, work: Work
) -> Message:
    if record.operation not in _CREATES:
        return await work(state, request)
    key = str(stream.metadata.get("x-idempotency-key", ""))
    if state.options.honours_idempotency_keys and key in state.answers:
        return state.answers[key]
    lacking = state.spend_create()
    if lacking:
        raise RefusalError("RESOURCE_EXHAUSTED", RATE_WORDS, [_policy(lacking)])
    latency = state.faults.between(*state.options.create_latency_ms) / 1000
    moment = state.faults.between(0, latency)
    await state.pause(moment)
    answer: Any = await work(state, request)
    record.instance = answer.sandbox_id
    state.answers[key] = answer
    await state.pause(latency - moment)
    made: Message = answer
    return made


async def _misfortune(state: State, fault: Fault) -> None:
    await state.pause(state.faults.delay_seconds(fault))
    if fault.kind.startswith(("drop", "hang")):
        raise NoAnswerError
    answer = fault.answer()
    if answer is not None:
        details = [_policy(fault.retry_after)] if fault.kind == "throttled" else []
        raise RefusalError(answer[0].name, answer[1], details)


def _policy(seconds: float) -> Message:
    return api_pb2.RPCRetryPolicy(retry_after_secs=seconds)


def _hollow(kind: str, stream: Any) -> Message:
    """An answer without what it must have: no entries, or one entry that is empty."""
    answer: Any = stream._send_type()
    if kind == "garbage" and isinstance(answer, api_pb2.SandboxListResponse):
        answer.sandboxes.add()
    hollow: Message = answer
    return hollow


def _authenticate(state: State, stream: Any) -> None:
    """A control plane's caller shows its tokens, a router's the word it was given."""
    tokens = state.options.tokens
    given = (
        stream.metadata.get("x-modal-token-id", ""),
        stream.metadata.get("x-modal-token-secret", ""),
    )
    if stream.metadata.get("authorization", "").startswith("Bearer "):
        return
    if not all(given) or tokens not in (None, given):
        raise RefusalError("UNAUTHENTICATED", "Token ID is malformed or unknown")


def _facts(operation: str, request: Any) -> dict[str, Any]:
    if operation.removesuffix("V2") == LIST:
        return {"cursor": request.before_timestamp}
    if operation not in _CREATES:
        return {}
    tags = {tag.tag_name: tag.tag_value for tag in request.tags}
    definition = request.definition
    return {
        "gpu": definition.resources.gpu_config.gpu_type,
        "text": f"{definition.name} {' '.join(definition.entrypoint_args)}",
        "uid": tags.get("vk.uid"),
    }
