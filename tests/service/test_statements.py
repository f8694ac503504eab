"""Statements that go to the driver itself."""

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, bindparam, create_engine, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from sidelong.service.store.sql.statements import Insertion, PreparedStatement

words = Table("words", MetaData(), Column("number", Integer, primary_key=True), Column("key", String))
INSERTION = Insertion(words, ["key", "number"])
ALL = PreparedStatement(select(words.c.number, words.c.key).order_by(words.c.number))
RENAME = PreparedStatement(update(words).values(key=bindparam("called")))


@pytest.fixture
def connection():
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        words.create(connection)
        yield connection
    engine.dispose()


@pytest.mark.parametrize(("count", "statements"), [(0, 0), (1, 1), (2, 1), (7, 3), (64, 1), (65, 2), (200, 4)])
def test_rows_are_written_by_few_statements(connection, count, statements):
    ran = []
    rows = [(f"word {number}", number) for number in range(count)]
    connection.connection.driver_connection.set_trace_callback(ran.append)
    INSERTION.run(connection, rows)
    connection.connection.driver_connection.set_trace_callback(None)
    assert sum(each.startswith("INSERT") for each in ran) == statements
    assert ALL.rows(connection) == [(number, key) for key, number in rows]


def test_what_was_changed_is_counted(connection):
    assert ALL.first(connection) is None
    INSERTION.run(connection, [("one", 1), ("two", 2)])
    assert RENAME.changed(connection, called="new") == 2
    assert ALL.first(connection) == (1, "new")


def test_errors_of_the_driver_become_those_of_sqlalchemy_and_hide_what_was_sent(connection):
    INSERTION.run(connection, [("one", 1)])
    with pytest.raises(IntegrityError) as caught:
        INSERTION.run(connection, [("secret", 1)])
    assert "secret" not in str(caught.value)
    words.drop(connection)
    with pytest.raises(OperationalError, match="no such table"):
        ALL.rows(connection)
