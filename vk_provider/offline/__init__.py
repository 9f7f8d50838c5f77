"""``explain``: what each backend would be asked for a workload, without a cluster or an account."""
