"""The only place that writes SQL: contingencies, heads, deployments, runs, and the event log."""
