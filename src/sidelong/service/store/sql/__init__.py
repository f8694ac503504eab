"""SQLite and PostgreSQL. Nothing outside of this room knows SQLAlchemy."""
