"""PURE. The Node object, its Lease and its door, as values. No clock, no I/O."""
