"""API v1: one router per group of routes, gathered by `registry.service.app`."""
