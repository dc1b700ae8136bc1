"""Every number of a benchmark, so that results can be asked for in SQL and outlive the report's folder."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table of benchmark numbers."""
    op.create_table(
        "benchmark_numbers",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("group_digest", sa.String(64), nullable=False),
        sa.Column("entry", sa.String(100), nullable=False),
        sa.Column("table_name", sa.String(100), nullable=False),
        sa.Column("row_label", sa.Text(), nullable=False),
        sa.Column("quantity", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("std", sa.Float(), nullable=True),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("paper", sa.Float(), nullable=True),
        sa.Column("paper_std", sa.Float(), nullable=True),
        sa.Column("budget", sa.String(100), nullable=False),
        sa.Column("seeds", sa.Integer, nullable=False),
        sa.Column("code_version", sa.String(100), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("group_digest", "table_name", "row_label", "quantity"),
    )
    op.create_index("ix_benchmark_numbers_entry", "benchmark_numbers", ["entry", "id"])
