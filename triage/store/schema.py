"""All tables, for whoever needs the whole of them. A command loads only those that it asks: to declare one takes a millisecond or two."""

from triage.store import action_tables, chat_tables, part_tables, rule_tables, tables
from triage.store.columns import Base

METADATA = Base.metadata
MODULES = (tables, part_tables, rule_tables, chat_tables, action_tables)
