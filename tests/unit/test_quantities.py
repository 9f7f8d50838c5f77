"""Quantities are exact, canonical as the API server's, and a pod's requests are the scheduler's."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vk_provider import quantities


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("500m", Fraction(1, 2)),
        ("2Gi", Fraction(2 * 1024**3)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("12e-1", Fraction(6, 5)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("+3", Fraction(3)),
        ("-1500m", Fraction(-3, 2)),
        ("7u", Fraction(7, 10**6)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
    ],
)
def test_parse_is_exact(text: str | float, amount: Fraction) -> None:
    """Every suffix and exponent stands for its exact amount."""
    assert quantities.parse(text) == amount


@pytest.mark.parametrize(
    "text", ["", "abc", "1.2.3", "5 Gi", "1KiB", "1e", "1e9999", "1" * 101, "٣", True]
)
def test_parse_refuses_with_the_text_it_found(text: str) -> None:
    """What is no quantity is named in the error, cut where it is endless."""
    with pytest.raises(ValueError, match=r'quantity: found ".*", allowed: a number') as caught:
        quantities.parse(text)

    assert str(text)[:50] in str(caught.value)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1000", "1k"),
        ("0", "0"),
        ("0.0000000001", "1n"),
        (4, "4"),
    ],
)
def test_canonical_is_what_the_api_server_stores(text: str | float, canonical: str) -> None:
    """Whole digits with the largest suffix, in the family of the given one, rounded up at nano."""
    assert quantities.canonical(text) == canonical


@given(st.integers(-(10**15), 10**15), st.booleans())
def test_rendered_amounts_parse_back(nanos: int, binary: bool) -> None:
    """Rendering loses nothing down to a nano."""
    amount = Fraction(nanos, 10**9)

    assert quantities.parse(quantities.render(amount, binary=binary)) == amount


def test_sums_and_maxima_are_per_resource() -> None:
    """Resources that only one side has are kept."""
    one, other = {"cpu": Fraction(1)}, {"cpu": Fraction(2), "memory": Fraction(5)}

    assert quantities.add(one, other) == {"cpu": 3, "memory": 5}
    assert quantities.largest(one, other) == {"cpu": 2, "memory": 5}


def container(restart_policy: str | None = None, **resources: object) -> dict[str, object]:
    """A container with these requests."""
    return {"restartPolicy": restart_policy, "resources": {"requests": resources}}


def test_requests_of_regular_containers_add_up_and_count_one_pod() -> None:
    """The plain case, with a number as YAML has it."""
    pod = {"spec": {"containers": [container(cpu="500m"), container(cpu=1, memory="1Gi")]}}

    assert quantities.pod_requests(pod) == {"cpu": Fraction(3, 2), "memory": 1024**3, "pods": 1}


def test_the_largest_init_container_counts_beside_the_sidecars_before_it() -> None:
    """Init containers run one at a time; a sidecar stays for those after it and for the pod."""
    init = [container(cpu="1"), container("Always", cpu="2"), container(cpu="4")]

    small = {"spec": {"initContainers": init, "containers": [container(cpu="1")]}}
    large = {"spec": {"initContainers": init, "containers": [container(cpu="5")]}}

    assert quantities.pod_requests(small)["cpu"] == 6
    assert quantities.pod_requests(large)["cpu"] == 7


def test_a_limit_without_a_request_is_a_request() -> None:
    """Extended resources are mostly given as limits only."""
    pod = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}

    assert quantities.pod_requests(pod)["nvidia.com/gpu"] == 2


def test_pod_level_requests_replace_sums_and_overhead_comes_on_top() -> None:
    """Pod level knows cpu, memory and huge pages; its limit counts where no container asks."""
    pod = {
        "spec": {
            "containers": [container(cpu="1", **{"nvidia.com/gpu": "1"})],
            "resources": {
                "requests": {"cpu": "3", "nvidia.com/gpu": "9"},
                "limits": {"cpu": "8", "memory": "2Gi", "hugepages-2Mi": "4Mi"},
            },
            "overhead": {"cpu": "250m"},
        }
    }

    assert quantities.pod_requests(pod) == {
        "cpu": Fraction(13, 4),
        "nvidia.com/gpu": 1,
        "memory": 2 * 1024**3,
        "hugepages-2Mi": 4 * 1024**2,
        "pods": 1,
    }


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"spec": {"containers": ["x", None]}}])
def test_requests_of_a_malformed_pod_are_one_pod(pod: dict[str, object]) -> None:
    """Garbage asks for nothing."""
    assert quantities.pod_requests(pod) == {"pods": 1}


def test_integers_that_are_none() -> None:
    """Neither words nor endless digits."""
    assert quantities.integer("12") == 12
    assert quantities.integer("twelve") is None
    assert quantities.integer("1" * 5000) is None
