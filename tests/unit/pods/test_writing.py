"""One PATCH at a time, none that says nothing, and last words as termination messages."""

from typing import Any

from tests.unit.pods.situations import (
    CHEAP,
    at,
    container,
    instance,
    live,
    make_pod,
    make_world,
    new,
    running_status,
)
from vk_provider.pods import desired
from vk_provider.pods.actions import Action, WakeAt, WriteStatus
from vk_provider.pods.room import LONGEST_MESSAGE, shortened
from vk_provider.pods.slots import Record
from vk_provider.pods.types import InstancePhase, Placement, Running, Terminated, Waiting
from vk_provider.pods.world import BackendFacts
from vk_provider.pods.writing import print_of, write

ENDED = instance(
    InstancePhase.ENDED,
    container(Terminated(1)),
    container(Terminated(2, message="own words"), "side"),
    container(Running(), "third"),
    init_containers=(container(Terminated(0), "prepare"),),
)


def patch(actions: list[Action]) -> Any:
    """The one PATCH."""
    [action] = actions
    assert isinstance(action, WriteStatus)
    return action.patch


def test_intent_and_waiting_state_travel_in_one_patch() -> None:
    """One PATCH before the create call: placement and why nothing runs yet."""
    placement = Placement(new().uid, "a", CHEAP.offer.id)
    written = patch(write(new(), make_world(), waiting=Waiting("X"), placement=placement))

    assert desired.placement({"metadata": {**written["metadata"]}}) == placement
    assert written["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "X"}}


def test_a_waiting_message_is_cut_to_what_the_api_server_takes() -> None:
    """A refused status would show nothing at all."""
    long = "x" * (LONGEST_MESSAGE + 1)
    written = patch(write(new(), make_world(), waiting=Waiting("X", long)))

    message = written["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert message == shortened(long)


def test_nothing_is_written_while_a_write_is_under_way_or_without_a_pod() -> None:
    """Its answer brings the next decision."""
    assert write(new(writing=True), make_world()) == []
    assert write(Record(new().uid, at(0)), make_world()) == []


def test_a_write_that_failed_waits_for_its_time() -> None:
    """Then it is made again."""
    record = new(write_not_before=at(10))

    assert write(record, make_world(9)) == [WakeAt(at(10))]
    assert patch(write(record, make_world(10)))


def test_what_the_api_server_has_is_not_written_again() -> None:
    """At rest a pod costs nothing."""
    record = live()
    assert record.pod is not None
    written = patch(write(record, make_world(10)))
    status = {**record.pod["status"], **written["status"]}
    status["hostIPs"] = [{"ip": "10.0.0.9"}]

    assert write(live(make_pod(status=status)), make_world(20)) == []


def test_what_the_api_server_does_not_take_is_not_sent_again() -> None:
    """It drops fields whose feature is off. Once somebody else wrote, all that differs is sent."""
    pod = make_pod(metadata={"resourceVersion": "7"})
    written = patch(write(live(pod), make_world()))
    answered = live(pod, sent=print_of(written), answered="7")

    assert write(answered, make_world()) == []
    assert patch(write(live(pod, sent=print_of(written)), make_world())) == written
    assert patch(write(live(pod, sent=0, answered="7"), make_world())) == written
    assert patch(write(live(pod, sent=print_of(written), answered="6"), make_world())) == written


def test_a_pod_on_its_way_out_is_not_ready() -> None:
    """No traffic to what is being cleared away."""
    record = live(make_pod(status=running_status()))
    written = patch(write(record, make_world(20), ending=True))

    conditions = {one["type"]: one["status"] for one in written["status"]["conditions"]}
    assert conditions["Ready"] == "False"


def test_annotations_of_the_instance_go_onto_the_pod() -> None:
    """Endpoints, port mappings, the price."""
    seen = instance(annotations={"vk-provider.dev/endpoint": "x"})
    written = patch(write(live(seen=seen), make_world()))

    assert written["metadata"]["annotations"] == {"vk-provider.dev/endpoint": "x"}


def test_last_words_become_messages_where_the_backend_has_none() -> None:
    """Only of containers that ended."""
    names = ("main", "side", "third")
    pod = make_pod(
        containers=[{"name": name} for name in names], initContainers=[{"name": "prepare"}]
    )
    words = {"main": "bye", "side": "lost", "third": "alive", "prepare": "ready"}
    written = patch(write(live(pod, ENDED, logs=words), make_world()))["status"]

    states = {one["name"]: one["state"] for one in written["containerStatuses"]}
    assert states["main"]["terminated"]["message"] == "bye"
    assert states["side"]["terminated"]["message"] == "own words"
    assert "terminated" not in states["third"]
    assert written["initContainerStatuses"][0]["state"]["terminated"]["message"] == "ready"


def test_a_kubelets_word_that_there_is_no_message_stands() -> None:
    """Its policy decides: success with FallbackToLogsOnError has none, whatever was logged."""
    world = make_world(facts={"a": BackendFacts(restarts_in_place=True)})

    written = patch(write(live(seen=ENDED, logs={"main": "bye"}), world))["status"]

    assert "message" not in written["containerStatuses"][0]["state"]["terminated"]


def test_without_last_words_or_an_instance_nothing_is_added() -> None:
    """The observation is told as it is."""
    silent = patch(write(live(seen=ENDED, logs={"main": ""}), make_world()))["status"]

    assert "message" not in silent["containerStatuses"][0]["state"]["terminated"]
    assert patch(write(new(logs={"main": "x"}), make_world()))


def test_annotations_without_room_are_left_out_and_the_status_is_written() -> None:
    """Better Running without an endpoint than no word at all."""
    pod = make_pod(metadata={"annotations": {"own": "x" * (256 * 1024 - 20)}})
    seen = instance(annotations={"vk-provider.dev/endpoint-80": "https://example"})

    written = patch(write(live(pod, seen), make_world()))

    assert "annotations" not in written["metadata"]
    assert written["status"]["phase"] == "Running"
