"""What all conformance checks are written with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa


def expect(condition: Any, sentence: str) -> None:
    """Fails with a sentence.

    Raises:
        AssertionError: the condition does not hold.
    """
    if not condition:
        raise AssertionError(sentence)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Turns an error of the plug-in into a sentence that says where it came up.

    Raises:
        AssertionError: the plug-in raised something.
    """
    try:
        yield
    except AssertionError:
        raise
    except Exception as e:
        raise AssertionError(f"{what} raised {type(e).__name__}: {e}") from e


def expect_schema(table: Any, schema: pa.Schema, what: str) -> None:
    """A table has exactly the columns of a schema."""
    expect(isinstance(table, pa.Table), f"{what} is {type(table).__name__}, not a pyarrow.Table")
    wanted = [(f.name, str(f.type)) for f in schema]
    found = [(f.name, str(f.type)) for f in table.schema]
    if found == wanted:
        return
    wrong = next((f for f in found if f not in wanted), None)
    lacking = next((w for w in wanted if w not in found), None)
    said = f"column {wrong[0]} ({wrong[1]}) is too much" if wrong else "the order differs"
    if lacking:
        said = f"column {lacking[0]} ({lacking[1]}) is missing"
    raise AssertionError(f"{what} does not have the declared schema: {said}")


def expect_base(schema: pa.Schema, base: pa.Schema, what: str) -> None:
    """A schema begins with the common columns."""
    for field in base:
        index = schema.get_field_index(field.name)
        expect(index >= 0, f"{what} lacks the common column {field.name}")
        expect(
            schema.field(index).type == field.type,
            f"{what}: column {field.name} is {schema.field(index).type}, the common schema says "
            f"{field.type}",
        )
    expect(
        len(set(schema.names)) == len(schema.names), f"{what} has a column name that stands twice"
    )


def expect_no_null(table: pa.Table, columns: Sequence[str], what: str) -> None:
    """Key columns are filled."""
    for name in columns:
        expect(not table[name].null_count, f"{what}: column {name} has nulls")


def keys_of(table: pa.Table, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of some columns."""
    return list(zip(*(table[n].to_pylist() for n in columns), strict=True))
