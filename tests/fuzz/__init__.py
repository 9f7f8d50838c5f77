"""Coverage-guided fuzzing of both parsers with atheris: `make fuzz`, `FUZZ_SECONDS=600` each.

An input that breaks something is written to `.cache/fuzz/`; copied to `found/` it becomes a unit
test for good, which needs no atheris.
"""
