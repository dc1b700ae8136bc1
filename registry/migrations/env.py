"""Runs migrations on the connection that `registry.engine` hands over, inside its transaction."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=None, transactional_ddl=True)
context.run_migrations()
