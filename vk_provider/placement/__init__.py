"""PURE. Which offer of which backend a pod gets."""
