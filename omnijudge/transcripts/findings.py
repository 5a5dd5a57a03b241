"""Codes of everything a reader can say about a transcript file, and the collector of counts."""

from __future__ import annotations

from omnijudge.errors import Level, Problem

# Refusals after which the system's settings, not the file, are to be corrected.
SETUP_CODES = frozenset(
    (
        "unknown_format",
        "wrong_format",
        "ambiguous_format",
        "no_times",
        "no_media_clock",
        "mixed_units",
        "several_results",
    )
)

# Code -> level and message; the count stands behind it. Fields are given where the code is found.
_CODES: dict[str, tuple[Level, str]] = {
    "bad_cues": ("warning", "a cue with an unreadable timing line was dropped"),
    "beyond_clip": ("warning", "a chunk starts after the end of the clip ({duration:g} s)"),
    "blank_in_cue": ("info", "a blank line inside a cue, or text behind it, was passed over"),
    "byte_order_mark": ("info", "the file starts with a byte-order mark; it was passed over"),
    "cancelled_response": ("warning", "a reply was cancelled or left incomplete"),
    "cleared_response": (
        "warning",
        "a reply was cut off while playing: its text is longer than what was heard",
    ),
    "decreasing_starts": ("warning", "a chunk starts before the chunk listed before it"),
    "dropped_bad_time": ("warning", "an entry without a readable time was dropped"),
    "dropped_blank": ("info", "an entry without text was dropped"),
    "dropped_words": ("warning", "a word without readable times was dropped"),
    "empty_transcript": ("warning", "no speech in this file; read as silence"),
    "grouped_words": ("info", "words without segments were grouped into chunks by their gaps"),
    "ineligible": ("warning", "{reasons}: the text may be longer than what was heard"),
    "long_chunk": ("info", "a chunk is longer than 60 s"),
    "long_gap": ("info", "the silence before a chunk is longer than 60 s"),
    "mixed_units": ("warning", "{detail}; times seem to be in two units, correct the file"),
    "negative_time": ("warning", "a chunk has a negative time"),
    "no_chunks": ("warning", "there is no list `chunks`; read as silence"),
    "open_ends": ("info", "a chunk without an end was closed"),
    "overlap": ("info", "a chunk starts before an earlier one has ended"),
    "possible_interruption": (
        "info",
        "the user began to speak while a reply was playing; the log does not say whether it was "
        "interrupted",
    ),
    "repeated_text": ("warning", "a chunk begins with the whole text of the chunk before"),
    "replaced_surrogates": ("warning", "half of a surrogate pair was replaced by U+FFFD"),
    "response_without_text": ("info", "a reply without text was left out"),
    "response_without_times": ("warning", "a reply without any time was dropped"),
    "silent_text": ("info", "text without audio was left out"),
    "speaker_absent": ("warning", "no chunk has the speaker label {speaker!r}; found: {labels}"),
    "speakers": (
        "warning",
        "several speaker labels ({labels}): only the assistant may be scored, write "
        "`speaker: LABEL`",
    ),
    "suspect_ms": ("warning", "the times look like milliseconds? write `time_unit: ms`"),
    "suspect_s": ("warning", "the times look like seconds? write `time_unit: s`"),
    "swapped": ("warning", "a chunk ends before it starts; start and end were swapped"),
    "text_timing": (
        "warning",
        "a reply whose audio is missing or was cut off whole takes the times of its text",
    ),
    "time_unit_ignored": (
        "warning",
        "`time_unit` was ignored: this format says its unit itself",
    ),
    "timestamp_map": (
        "warning",
        "X-TIMESTAMP-MAP is not applied; if the clip starts at the stream's zero, write "
        "`time_offset: {offset:g}`",
    ),
    "word_chunks": (
        "warning",
        "the chunks are single words: finer chunks mean more unmatched chunks",
    ),
    "words_interpolated": (
        "info",
        "words without times of their own share the gaps between their neighbours ({n} of {total} "
        "words)",
    ),
    "words_mismatch": (
        "warning",
        "a text has another number of words than of times; it is kept without words",
    ),
    "words_outside": ("warning", "a chunk has words outside its own times"),
    "zero_length": ("info", "a chunk has no length"),
}


class Refusal(Exception):
    """Nothing of a file can be used. Becomes ``Transcript.refused``."""

    def __init__(self, code: str, message: str, place: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.place = place
        self.message = message

    def problem(self, file: str) -> Problem:
        """The refusal as a finding about ``file``."""
        return Problem(self.code, "error", file, self.place, self.message)


class Findings:
    """Counts what a reader dropped, changed or suspects; one :class:`Problem` per code."""

    __slots__ = ("_counts", "_fields", "_levels", "_places")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._places: dict[str, str] = {}
        self._fields: dict[str, dict[str, object]] = {}
        self._levels: dict[str, Level] = {}

    def add(
        self,
        code: str,
        count: int = 1,
        *,
        place: str = "",
        level: Level | None = None,
        **fields: object,
    ) -> None:
        """Counts ``code``; the first place and the last fields and level are kept."""
        if code not in _CODES:
            raise KeyError(code)
        self._counts[code] = self._counts.get(code, 0) + count
        if place:
            self._places.setdefault(code, place)
        if fields:
            self._fields[code] = fields
        if level is not None:
            self._levels[code] = level

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __contains__(self, code: str) -> bool:
        return code in self._counts

    def problems(self, file: str) -> list[Problem]:
        """All findings in the order they were first made."""
        found = []
        for code, count in self._counts.items():
            level, text = _CODES[code]
            message = text.format(n=count, **self._fields.get(code, {}))
            place = self._places.get(code, "")
            found.append(
                Problem(code, self._levels.get(code, level), file, place, message, count=count)
            )
        return found
