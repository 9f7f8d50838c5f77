"""Run one target under atheris: `python -m tests.fuzz TARGET FOLDER [libFuzzer options]`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from tests.fuzz.seeds import SEEDS

_GUARDS = ("-timeout=10", "-rss_limit_mb=512", "-max_len=4096", "-print_final_stats=1")


def main() -> None:
    """Fuzz until the options say stop; a crash, a hang or growth ends the process with an error."""
    name, folder, *options = sys.argv[1:]
    corpus = Path(folder, name)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        (corpus / f"seed-{number}").write_bytes(seed)
    # Not a dependency of the product or of its tests, hence not imported by name.
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["vk_provider.wire"]):
        targets = importlib.import_module("tests.fuzz.targets").TARGETS
    arguments = [sys.argv[0], *_GUARDS, f"-artifact_prefix={folder}/{name}-", *options, str(corpus)]
    atheris.Setup(arguments, targets[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
