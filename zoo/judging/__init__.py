"""How good a surrogate is: errors, unseen severities, certificates."""
