"""Shipped for provider authors: a fake backend and the contract suite every provider passes."""
