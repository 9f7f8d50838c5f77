"""PURE. What should happen to a pod: resolve, decide, render its status. No clock, no I/O."""
