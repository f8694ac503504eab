"""SQLite and PostgreSQL. Nothing outside of this package knows SQLAlchemy."""
