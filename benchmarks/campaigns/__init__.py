"""Long attacks on the promises of docs/reliability.md; a small, seeded part of each runs in the tests."""
