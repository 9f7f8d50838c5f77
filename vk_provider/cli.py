"""The command line: flags in, an exit code out (0 done, 1 a fault, 2 usage or configuration).

Fed by a person or a container's arguments; feeds :mod:`vk_provider.app` (``run``) and prints what
the offline commands found.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from vk_provider import __version__, doctor, log
from vk_provider.faults import ConfigError, VkProviderError
from vk_provider.offline.candidates import configured, with_defaults, with_live_offers
from vk_provider.offline.explain import explain
from vk_provider.offline.explain_text import render
from vk_provider.offline.workloads import read_manifests
from vk_provider.output import Style, complain, fill_in_streams, say
from vk_provider.pods.gpus import gpu_request
from vk_provider.registry import SIMULATORS, installed, load_simulator
from vk_provider.scaffold import new_provider
from vk_provider.settings import NodeSettings
from vk_provider.settings_file import Settings, load_settings
from vk_provider.yaml_documents import Complaint, read_documents

DONE, FAULT, MISUSE = 0, 1, 2
INTERRUPTED = 128 + signal.SIGINT  # as a shell says it of a program that Ctrl-C ended

Result = TypeVar("Result")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the result is the process's exit code."""
    fill_in_streams()
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except SystemExit as stop:
        # argparse has printed its help or its complaint already.
        return stop.code if isinstance(stop.code, int) else FAULT
    except ConfigError as error:
        complain(str(error))
        return MISUSE
    except VkProviderError as error:
        complain(f"vk-provider: {log.scrub(str(error))}")
        return FAULT
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # then whoever read our output has seen enough
            complain(f"vk-provider: {error}")
        # Nothing is left to be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAULT
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run(arguments: argparse.Namespace) -> int:
    settings = load_settings(_files(arguments.file))
    log.set_up(arguments.log_level, arguments.log_format)
    # Only this command needs the whole machinery, whose import takes longer than all others run.
    from vk_provider import app

    return _finish(app.run(settings, arguments.kubeconfig, arguments.context))


def _finish(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    """uvloop's, if the extra ``speed`` is installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.Loop


def _validate(arguments: argparse.Namespace) -> int:
    settings = _load(arguments.file)
    for node in settings.nodes:
        say(_summary(node))
    if settings.bursting is not None:
        source = settings.bursting.source
        say(f"{source}: bursting is valid" if source else "bursting: the defaults apply")
    return DONE


def _load(files: Sequence[str]) -> Settings:
    settings = load_settings(_files(files))
    for doubt in settings.doubts:
        complain(doubt)
    return settings


def _summary(node: NodeSettings) -> str:
    backends = ", ".join(f"{backend.name} ({backend.provider})" for backend in node.backends)
    capacity = ", ".join(f"{resource}={amount}" for resource, amount in node.capacity.items())
    return f"{node.source}: node {node.name} is valid: {capacity}; backends: {backends}"


def _explain(arguments: argparse.Namespace) -> int:
    complaints: list[Complaint] = []
    documents = [
        document for file in _files(arguments.file) for document in read_documents(file, complaints)
    ]
    manifests = read_manifests(documents, complaints)
    if not complaints and not manifests.workloads:
        found = f" (only {', '.join(manifests.ignored)})" if manifests.ignored else ""
        raise ConfigError([f"no Pod and no pod template in {' '.join(arguments.file)}{found}"])
    if complaints:
        raise ConfigError(str(complaint) for complaint in complaints)
    if arguments.config:
        candidates = configured(_load(arguments.config).nodes)
    elif arguments.online:
        raise ConfigError(["--online needs --config: whose account is to be asked?"])
    else:
        candidates = with_defaults()
    if arguments.online:
        counts = {gpu_request(workload.pod)[0] for workload in manifests.workloads}
        candidates = _finish(with_live_offers(candidates, counts))
    reports = explain(manifests, candidates)
    say(render(reports, manifests.ignored, Style.of(sys.stdout)))
    return DONE if all(report.can_run for report in reports) else FAULT


def _simulate(arguments: argparse.Namespace) -> int:
    simulator = load_simulator(arguments.name)
    parser = argparse.ArgumentParser(prog=f"vk-provider simulate {arguments.name}")
    parser.add_argument("--log-level", default="info", choices=_LOG_LEVELS)
    simulator.add_arguments(parser)
    own = parser.parse_args(arguments.flags)
    log.set_up(own.log_level)
    try:
        _finish(simulator.serve(own))
    except OSError as error:
        reason = error.strerror or error
        complain(f"vk-provider: can't listen: {reason}; see --host, and --port 0 takes a free one")
        return FAULT
    return DONE


def _doctor(arguments: argparse.Namespace) -> int:
    checkup = doctor.load(arguments.checkup)
    parser = argparse.ArgumentParser(
        prog=f"vk-provider doctor {arguments.checkup}",
        description=f"Look {doctor.CHECKUPS[arguments.checkup]}.",
        epilog="Exit codes: 0 nothing is wrong, 1 something is, 2 usage or configuration.",
    )
    parser.add_argument("-f", "--file", action="append", default=[], help=_FILE_HELP)
    _say_which_cluster(parser)
    checkup.add_arguments(parser)
    own = parser.parse_args(arguments.flags)
    own.file = _files(own.file)
    log.set_up("warning")
    return _finish(checkup.run(own))


def _new_provider(arguments: argparse.Namespace) -> int:
    if arguments.name in installed():
        found = f'the name of a provider: found "{arguments.name}", which is installed already'
        raise ConfigError([f"{found}; allowed: any but {', '.join(installed())}"])
    folder = Path(arguments.into or f"vk-provider-{arguments.name}")
    for path in new_provider(arguments.name, folder):
        say(str(path))
    say(f"\nInstall it (pip install -e {folder}), then run its tests (pytest {folder}).")
    return DONE


def _version(arguments: argparse.Namespace) -> int:
    providers = ", ".join(installed()) or "none"
    say(f"vk-provider {__version__} (Python {platform.python_version()}; providers: {providers})")
    return DONE


_LOG_LEVELS = ("debug", "info", "warning", "error")
_SUFFIXES = (".yaml", ".yml", ".json")
_FILE_HELP = "a YAML file, a folder of them, or - for standard input; may be repeated"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vk-provider",
        description="A Kubernetes node that is not there: its pods run on outside backends.",
        epilog="Exit codes: 0 done, 1 fault (explain: can run nowhere), 2 usage or configuration.",
    )
    parser.add_argument("--version", action="version", version=f"vk-provider {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "serve the nodes of a configuration")
    run.add_argument("-f", "--file", action="append", required=True, help=_FILE_HELP)
    _say_which_cluster(run)
    run.add_argument("--log-level", default="info", choices=_LOG_LEVELS)
    run.add_argument("--log-format", default="auto", choices=("auto", "human", "json"))

    validate = _command(commands, "validate", _validate, "check a configuration, offline")
    validate.add_argument("-f", "--file", action="append", required=True, help=_FILE_HELP)

    describe = "show what each backend would be asked for a workload, offline"
    explanation = _command(commands, "explain", _explain, describe)
    explanation.add_argument("-f", "--file", action="append", required=True, help=_FILE_HELP)
    config_help = "the nodes' configuration (default: every installed provider's defaults)"
    explanation.add_argument("--config", action="append", metavar="FILE", help=config_help)
    online_help = "ask the configured accounts for what they offer now, with prices and stock"
    explanation.add_argument("--online", action="store_true", help=online_help)

    names = ", ".join(installed(SIMULATORS)) or "none installed"
    simulate = _command(commands, "simulate", _simulate, f"run a backend's simulator ({names})")
    simulate.add_argument("name", metavar="NAME", help=names)
    flags_help = "its own flags: vk-provider simulate NAME --help"
    flags = simulate.add_argument("flags", nargs=argparse.REMAINDER, help=flags_help)
    flags.required = False  # else argparse names it beside a missing NAME

    _add_doctor(commands)

    scaffold = _command(
        commands, "new-provider", _new_provider, "write a new provider's first files"
    )
    scaffold.add_argument("name", metavar="NAME", help="what a backend's `provider:` will say")
    scaffold.add_argument("--into", metavar="DIR", help="default: vk-provider-NAME")

    _command(commands, "version", _version, "print the version and what is installed")
    return parser


def _add_doctor(commands: Any) -> None:
    checkups = ", ".join(f"{name}: {summary}" for name, summary in doctor.CHECKUPS.items())
    look = _command(commands, "doctor", _doctor, "look at a live cluster, before it matters")
    look.add_argument("checkup", choices=doctor.CHECKUPS, help=checkups)
    own_help = "its own flags: vk-provider doctor NAME --help"
    own_flags = look.add_argument("flags", nargs=argparse.REMAINDER, help=own_help)
    own_flags.required = False


def _say_which_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", help="default: in-cluster, else $KUBECONFIG, ~/.kube/config"
    )
    parser.add_argument("--context", help="context of the kubeconfig (default: its current one)")


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.set_defaults(command=run)
    return parser


def _files(given: Sequence[str]) -> list[str]:
    """The files themselves, with those of a folder in its place; each only once."""
    files: list[str] = []
    for name in given:
        if not name:
            raise ConfigError(["found an empty file name; is a variable of the shell unset?"])
        if name != "-" and Path(name).is_dir():
            found = sorted(str(each) for each in Path(name).iterdir() if each.suffix in _SUFFIXES)
            if not found:
                raise ConfigError([f"{name}: holds no file named {' or '.join(_SUFFIXES)}"])
            files += found
        else:
            files.append(name)
    return list(dict.fromkeys(files))
