"""The page: server-rendered views, gathered by `registry.service.app`."""
