"""``vk-provider doctor descheduler``: whether pods come home, and who would undo it.

Without files it looks at every descheduler of the cluster, and at the pods outside that would never
come home. With files of policies (also ConfigMaps, Deployments, the chart's values) it looks at
those alone and asks nobody. Fed by the API server or by ``-f``; the rules are
:mod:`vk_provider.bursting.descheduler_homecoming` and its neighbours.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.descheduler_homecoming import Expected, Program, examine
from vk_provider.bursting.descheduler_others import examine_other
from vk_provider.bursting.descheduler_pods import SYSTEM_CRITICAL, Surroundings, stuck
from vk_provider.bursting.descheduler_policy import VIRTUAL_LABELS, brings_home, profiles
from vk_provider.bursting.picture import VirtualNode
from vk_provider.bursting.reading import node_view
from vk_provider.doctor.descheduler_shape import shape_problems
from vk_provider.doctor.descheduler_sources import (
    Found,
    Key,
    find,
    is_about_deschedulers,
    of_documents,
    policies_wanted,
)
from vk_provider.doctor.report import tell
from vk_provider.faults import ConfigError, KubeNotFoundError
from vk_provider.fields import show
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.credentials import load_credentials
from vk_provider.output import say
from vk_provider.pods.types import Json
from vk_provider.settings_bursting import BurstingSettings
from vk_provider.settings_file import is_ours, settings_of
from vk_provider.yaml_documents import Complaint, Document, read_documents

CRON_JOBS = "/apis/batch/v1/cronjobs"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own: ``-f`` takes policies as well as the configuration."""
    parser.epilog = (
        "-f takes the configuration of vk-provider (its limits are compared), and policies, "
        "ConfigMaps, Deployments or the values of the descheduler's chart: then no cluster is "
        f"asked. {parser.epilog or ''}"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Look and tell. Raises ConfigError, KubeError."""
    given = _sorted(arguments.file)
    limits = given.settings.homecoming if given.settings is not None else None
    if given.found:
        return tell(_judge(given.found, Expected(limits), in_files=True))
    kubeconfig = Path(arguments.kubeconfig) if arguments.kubeconfig else None
    credentials = await load_credentials(kubeconfig, arguments.context)
    async with KubeClient(credentials) as client:
        nodes, _ = await client.list(paths.nodes())
        virtual = [node for node in nodes if _is_virtual(node)]
        labels = [_labels(node) for node in virtual] or [VIRTUAL_LABELS]
        found = await _deschedulers(client)
        advice = _judge(found, Expected(limits, labels))
        home = [_labels(node) for node in nodes if not _is_virtual(node)]
        names = frozenset(node["metadata"]["name"] for node in virtual)
        advice += await _pods_that_stay(client, found.programs, names, home)
    return tell(advice)


@dataclass(frozen=True, slots=True)
class _Given:
    """What the files hold: deschedulers, and our own configuration."""

    found: Found
    settings: BurstingSettings | None


def _sorted(files: Sequence[str]) -> _Given:
    """Everything in the files by what it is about; what is about neither is passed over.

    Raises ConfigError, also where files are given and all of them are passed over."""
    complaints: list[Complaint] = []
    documents = [one for file in files for one in read_documents(file, complaints)]
    policies = [one for one in documents if is_about_deschedulers(one.value)]
    own = [one for one in documents if is_ours(one)]
    for one in policies:
        complaints += [
            Complaint(one.file, one.line_of(problem.path), str(problem))
            for problem in shape_problems(one.value)
        ]
    settings = settings_of(own, complaints, files).bursting if own or complaints else None
    found = of_documents([(f"{one.file}:{one.line}", one.value) for one in policies])
    others = [one for one in documents if one not in (*policies, *own)]
    if files and not found and not own:
        raise ConfigError([f"no descheduler and no policy of one in {' '.join(files)}"])
    if others:
        say(f"passed over, as neither about deschedulers nor ours: {_kinds(others)}")
    return _Given(found, settings)


def _kinds(documents: Sequence[Document]) -> str:
    """Which kinds there are, and how many of each."""
    values = [one.value for one in documents]
    kinds = Counter(
        str(value.get("kind") or "no kind") if isinstance(value, dict) else show(value)
        for value in values
    )
    return ", ".join(f"{kind} ({number})" for kind, number in sorted(kinds.items()))


def _judge(found: Found, expected: Expected, *, in_files: bool = False) -> list[Advice]:
    ours = [program for program in found.programs if brings_home(program.policy)]
    others = [program for program in found.programs if not brings_home(program.policy)]
    advice = [one for program in ours for one in examine(program, expected)]
    advice += [one for program in others for one in examine_other(program, expected.virtual)]
    advice += [
        Advice(Level.WARNING, where, f"its policy is not to be had: {why}", "check it with -f")
        for where, why in found.mute
    ]
    advice += [
        Advice(
            Level.ERROR, where, f"its policy can't be read: {why}", "no descheduler starts on it"
        )
        for where, why in found.broken
    ]
    if len(ours) > 1 and not in_files:
        where = ", ".join(program.where for program in ours)
        what = "several bring pods home, and each keeps its own limits"
        advice.append(Advice(Level.ERROR, where, what, "keep one"))
    if not ours and not in_files:
        what = "no descheduler acts on vk-provider.dev/gate=return: pods that went out stay out"
        remedy = "kubectl apply -k deploy/descheduler"
        advice.append(Advice(Level.ERROR, "the cluster", what, remedy))
    return advice


async def _deschedulers(client: KubeClient) -> Found:
    """Every descheduler that runs in the cluster, with its policy."""
    workloads: list[Json] = []
    for kind, path in (("Deployment", paths.deployments()), ("CronJob", CRON_JOBS)):
        items, _ = await client.list(path)
        # Items of a list do not say their kind.
        workloads += [{**item, "kind": kind} for item in items]
    maps: dict[Key, Json] = {}
    for namespace, name in policies_wanted(workloads):
        try:
            path = f"{paths.config_maps(namespace)}/{name}"
            maps[namespace, name] = await client.get(path)
        except KubeNotFoundError:
            continue  # told as one whose policy can't be read
    return find(workloads, maps)


async def _pods_that_stay(
    client: KubeClient,
    programs: Sequence[Program],
    virtual: frozenset[str],
    home: Sequence[Mapping[str, str]],
) -> list[Advice]:
    """The pods outside that the homecoming policy would leave there."""
    evictor = _evictor(programs)
    if evictor is None:
        return []
    pods, _ = await client.list(paths.pods())
    budgets, _ = await client.list(BUDGETS)
    threshold, advice = await _threshold(client, evictor)
    owned = Counter(
        owner.get("uid", "") for pod in pods for owner in pod["metadata"].get("ownerReferences", ())
    )
    around = Surroundings(evictor, threshold, budgets, home, owned)
    outside = [pod for pod in pods if pod["spec"].get("nodeName") in virtual]
    kept = stuck(outside, around)
    if not kept:
        what = f"{len(outside)} pods on virtual nodes, all of which may come home"
        kept = [Advice(Level.OK, "pods", what)]
    return advice + kept


def _evictor(programs: Sequence[Program]) -> Json | None:
    for program in programs:
        for profile in profiles(program.policy):
            if profile.brings_home:
                return profile.evictor
    return None


async def _threshold(client: KubeClient, evictor: Json) -> tuple[int, list[Advice]]:
    """The priority from which on pods stay; the class that is named must exist."""
    wanted = evictor.get("priorityThreshold") or {}
    if wanted.get("value") is not None:
        return int(wanted["value"]), []
    if not (name := wanted.get("name")):
        return SYSTEM_CRITICAL, []
    try:
        found = await client.get(f"{PRIORITY_CLASSES}/{name}")
    except KubeNotFoundError:
        what = f"there is no PriorityClass {name!r}: the descheduler does nothing"
        remedy = "create it, or name the class of training"
        return SYSTEM_CRITICAL, [Advice(Level.ERROR, "priorityThreshold.name", what, remedy)]
    return int(found.get("value", 0)), []


def _is_virtual(node: Json) -> bool:
    return isinstance(node_view(node, ""), VirtualNode)


def _labels(node: Json) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}
