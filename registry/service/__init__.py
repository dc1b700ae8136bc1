"""The registry over HTTP: API v1, tokens, page. `create_app` makes the application; `cct-zoo serve` runs it."""
