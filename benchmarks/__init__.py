"""Our node beside kwok and the Go virtual-kubelet on one control plane: `python -m benchmarks`."""
