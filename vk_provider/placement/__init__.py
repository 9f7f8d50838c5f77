"""PURE. Which offer of which backend a pod gets, and what that may cost."""
