"""A store of recently used values that never holds more than so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByteCache(Generic[Value]):
    """Keeps what was used last, up to a number of bytes.

    Attributes:
        limit: most bytes it holds.
        used: bytes it holds now.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> Value | None:
        """The value, which then counts as used last; None if it is not there."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keeps a value of ``size`` bytes; one larger than the limit is not kept."""
        self.drop(key)
        if size > self.limit:
            return
        self._values[key] = (value, size)
        self.used += size
        while self.used > self.limit:
            _, (_, freed) = self._values.popitem(last=False)
            self.used -= freed

    def drop(self, key: Hashable) -> None:
        """Forgets a value, if it is there."""
        found = self._values.pop(key, None)
        if found is not None:
            self.used -= found[1]

    def clear(self) -> None:
        """Forgets everything."""
        self._values.clear()
        self.used = 0
