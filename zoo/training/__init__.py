"""Training surrogates and recording what came of it."""
