"""The only place that writes SQL: contingencies, heads, deployments, runs, benchmark numbers and the event log.

The contract of every function in here:

Values
    What comes out is a frozen record (`registry.records`), complete and detached, with its JSON parsed. Rows
    (`registry.schema`) never leave this package.
Atomicity
    A function that writes is one transaction: it is done when the function returns, and durable (it survives
    kill -9 and a power cut); when it raises, nothing of it has happened. Its events are part of it. Files must
    be in the artifact store before the row that refers to them is written, as `registry.home.Home` does.
Isolation
    There is one writer at a time; others wait up to `registry.backends.BUSY_TIMEOUT_MS`. Readers never wait and see
    one consistent state. Two processes doing the same thing at once do it once.
Threads and processes
    A `Database` may be shared between threads, and one carried over a fork opens connections of its own; when another
    thread was inside a SQLite transaction at that moment, the child is refused.
Errors
    `NotFoundError` for what does not exist, `ConflictError` for what contradicts the present state or a registry that
    stays busy, `UsageError` for values that cannot be stored, `GateError` for a head that is not good enough,
    `IntegrityError` for rows or a file that were damaged; any other trouble with the database is a `ZooError`. The
    driver's own errors do not get out.
"""
