"""Reasoning before the answer: telling the two apart."""

from __future__ import annotations

from dataclasses import dataclass

REASONING_ONLY = "reasoning_only"
"""Finish reason of a reply whose tokens all went into reasoning: there is no answer to read."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The texts that open and close reasoning."""

    start: str = "<think>"
    end: str = "</think>"


def split_reasoning(text: str, marks: Marks, opened: bool = False) -> str | None:
    """The answer behind the reasoning.

    Args:
        text: what the model generated.
        marks: how reasoning is marked.
        opened: whether the prompt itself ended inside the reasoning.

    Returns:
        The text behind the first mark that closes the reasoning; the whole text if there is no
        reasoning; None if the reasoning was never closed.
    """
    _, closed, answer = text.partition(marks.end)
    if closed:
        while answer.lstrip().startswith(marks.end):  # weak models close it again and again
            answer = answer.lstrip().removeprefix(marks.end)
        return answer.strip("\n")
    if opened or text.lstrip().startswith(marks.start):
        return None
    return text
