"""Run by Alembic. The caller hands over an open connection inside a transaction, so no URL or ini file is needed."""

from alembic import context

from triage.store.migrate import VERSION_TABLE
from triage.store.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
