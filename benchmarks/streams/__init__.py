"""exec, logs and port-forward beside a Go streaming server: `python -m benchmarks.streams`."""
