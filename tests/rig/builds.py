"""Builds the programs of the test bed on demand and keeps them in the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.rig import toolchain
from tests.rig.cache import build_lock, cache_folder
from tests.rig.deathsig import die_with_parent
from tests.rig.progress import Progress, say
from tests.rig.recipes import CONTROL_PLANE, Recipe, kube_version, published_go_mod, recipe_of


class BuildError(RuntimeError):
    """A program could not be built; says what Go said and what to try."""


def binary(program: str, version: str | None = None) -> Path:
    """Return the path of a program, building it first if the cache lacks it.

    `version` is Kubernetes' and defaults to `$KUBE_VERSION`. A program in `$KUBEBUILDER_ASSETS`
    is used as it is; a kube-* there only if it is of the version asked for.
    """
    return build_all([program], version)[program]


def build_all(programs: Sequence[str], version: str | None = None) -> dict[str, Path]:
    """Return the path of each program, building what is missing; says how many that are."""
    go = toolchain.find()
    paths = {program: _path(program, version, go) for program in programs}
    missing = [program for program, path in paths.items() if not path.exists()]
    for number, program in enumerate(missing, 1):
        place = f"{number} of {len(missing)}: " if len(missing) > 1 else ""
        with build_lock(place=place):
            if not paths[program].exists():  # another process may have built it while we waited
                recipe = recipe_of(program, version)
                _Workshop(recipe, go.ready(), paths[program].parent, place).build(program)
    return paths


def _path(program: str, version: str | None, go: toolchain.Toolchain) -> Path:
    """Return where a program is, or will be once it is built."""
    recipe = recipe_of(program, version)
    asset = _asset(program, recipe.version)
    return asset or cache_folder() / "bin" / recipe.key(go.version) / program


def _asset(program: str, version: str) -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder or program not in CONTROL_PLANE:
        return None
    path = Path(folder) / program
    if not os.access(path, os.X_OK):
        return None
    if program == "etcd":
        return path
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if answer.stdout.strip().endswith(f" v{version}"):
        return path
    say(f"{program} in $KUBEBUILDER_ASSETS is {answer.stdout.strip() or 'broken'}, not v{version}")
    return None


@dataclass(frozen=True, slots=True)
class _Workshop:
    """One recipe being built into one folder; `place` says which of how many it is."""

    recipe: Recipe
    go: Path
    folder: Path
    place: str = ""

    def build(self, program: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        work = self._module()
        partial = self.folder / f".{program}.partial"
        verb = ["test", "-c"] if program.endswith(".test") else ["build"]
        command = [*verb, "-ldflags", self.recipe.ldflags, "-o", str(partial)]
        what = f"{self.place}building {program} {self.recipe.version}"
        say(f"{what} (once; minutes on a cold machine)")
        self._run([*command, self.recipe.programs[program]], work, what)
        for kept in self.recipe.files:
            shutil.copytree(self._source() / kept, self.folder / kept, dirs_exist_ok=True)
        partial.rename(self.folder / program)  # last: its presence says that all is there

    def _source(self) -> Path:
        """Return the folder of the unpacked module, downloading it if need be."""
        wanted = f"{self.recipe.module}@v{self.recipe.version}"
        work = cache_folder()
        work.mkdir(parents=True, exist_ok=True)
        answer = self._run(
            ["mod", "download", "-json", wanted], work, f"{self.place}downloading {wanted}"
        )
        return Path(json.loads(answer)["Dir"])

    def _module(self) -> Path:
        """Make the module that requires the recipe's programs; return its folder.

        It is not built in place (`go install …@version`), as Go refuses that for modules
        with replace lines. All programs are added before the first is built, so that each
        of them is built from the same versions whichever is asked for first.
        """
        work = cache_folder() / "src" / self.folder.name
        if (work / "complete").exists():
            return work
        work.mkdir(parents=True, exist_ok=True)
        staging = self.recipe.staging
        upstream = (self._source() / "go.mod").read_text() if staging else "go 1.26\n"
        (work / "go.mod").write_text(published_go_mod(self.recipe, upstream))
        for program, package in self.recipe.programs.items():
            if not package.startswith(self.recipe.module):
                continue
            wanted = f"{package}@v{self.recipe.version}"
            kind = "-t" if program.endswith(".test") else "-tool"
            what = f"{self.place}downloading the modules of {wanted}"
            self._run(["get", kind, wanted], work, what)
        (work / "complete").touch()
        return work

    def _run(self, arguments: Sequence[str], work: Path, what: str) -> str:
        """Run one go command with progress lines; return its stdout."""
        progress = Progress(what)
        out, err = work / f"go.{os.getpid()}.out", work / f"go.{os.getpid()}.err"
        try:
            with out.open("w") as stdout, err.open("w") as stderr:
                code = self._wait(arguments, work, (stdout, stderr), progress)
            if code != 0:
                # `go mod download -json` says on stdout what failed.
                said = err.read_text() or out.read_text()
                raise BuildError(self._failure(arguments, said, what))
            progress.done()
            return out.read_text()
        finally:
            out.unlink(missing_ok=True)
            err.unlink(missing_ok=True)

    def _wait(
        self,
        arguments: Sequence[str],
        work: Path,
        streams: tuple[IO[str], IO[str]],
        progress: Progress,
    ) -> int:
        with subprocess.Popen(
            [self.go, *arguments],
            cwd=work,
            env=toolchain.environment(),
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            preexec_fn=die_with_parent(),
        ) as process:
            while True:
                try:
                    return process.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    progress.tick()
                except BaseException:
                    process.kill()
                    raise

    def _failure(self, arguments: Sequence[str], said: str, what: str) -> str:
        tail = "\n".join(said.strip().splitlines()[-20:])
        return (
            f"{what} failed: `go {' '.join(arguments)}` said:\n{tail}\n"
            f"Run it again (downloads resume); if it fails the same way, look at the disk space, "
            f"at the Go module proxy (GOPROXY), and at the version asked for "
            f"(KUBE_VERSION={kube_version()}). Programs you have already can be put into a folder "
            f"named by KUBEBUILDER_ASSETS."
        )
