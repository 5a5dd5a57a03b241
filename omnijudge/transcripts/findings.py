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

# Code -> level and message. {n} is the count; further fields are given where the code is found.
_CODES: dict[str, tuple[Level, str]] = {
    "audio_without_text": ("info", "{n} replies with audio but no text were left out"),
    "bad_cues": ("warning", "{n} cues with an unreadable timing line were dropped"),
    "beyond_clip": ("warning", "{n} chunks start after the end of the clip ({duration:g} s)"),
    "blank_in_cue": ("info", "{n} blank lines inside cues were passed over"),
    "byte_order_mark": ("info", "the file starts with a byte-order mark; it was passed over"),
    "cancelled_response": ("warning", "{n} replies were cancelled or left incomplete"),
    "cleared_response": (
        "warning",
        "{n} replies were cut off while playing: the text is longer than what was heard",
    ),
    "decreasing_starts": ("warning", "{n} chunks start before the chunk listed before them"),
    "dropped_bad_time": ("warning", "{n} entries without a readable time were dropped"),
    "dropped_blank": ("info", "{n} entries without text were dropped"),
    "dropped_words": ("warning", "{n} words without readable times were dropped"),
    "empty_transcript": ("warning", "no speech in this file; read as silence"),
    "grouped_words": ("info", "{n} words without segments were grouped into chunks by their gaps"),
    "ineligible": ("warning", "{reasons}: the text may be longer than what was heard"),
    "long_chunk": ("info", "{n} chunks are longer than 60 s"),
    "long_gap": ("info", "{n} silences between chunks are longer than 60 s"),
    "mixed_units": ("warning", "{detail}; times seem to be in two units, correct the file"),
    "negative_time": ("warning", "{n} chunks have a negative time"),
    "no_chunks": ("warning", "there is no list `chunks`; read as silence"),
    "open_ends": ("info", "{n} chunks without an end were closed"),
    "overlap": ("info", "{n} chunks start before an earlier one has ended"),
    "possible_interruption": (
        "info",
        "the user spoke {n} times while a reply was playing; the log does not say whether it "
        "was interrupted",
    ),
    "repeated_text": ("warning", "{n} chunks begin with the whole text of the chunk before"),
    "replaced_surrogates": ("warning", "{n} broken characters were replaced by U+FFFD"),
    "response_without_text": ("info", "{n} replies without text were left out"),
    "response_without_times": ("warning", "{n} replies without any time were dropped"),
    "silent_text": ("info", "{n} pieces of text without audio were left out"),
    "speaker_absent": ("warning", "no chunk has the speaker label {speaker!r}; found: {labels}"),
    "speakers": (
        "warning",
        "{n} speaker labels ({labels}): only the assistant may be scored, write `speaker: LABEL`",
    ),
    "suspect_ms": ("warning", "the times look like milliseconds? write `time_unit: ms`"),
    "suspect_s": ("warning", "the times look like seconds? write `time_unit: s`"),
    "swapped": ("warning", "{n} chunks ended before they started; start and end were swapped"),
    "text_timing": (
        "warning",
        "{n} replies whose audio is missing or was cut off whole take the times of their text",
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
        "{n} of {total} words had no times of their own and share the gaps between their "
        "neighbours",
    ),
    "words_mismatch": (
        "warning",
        "{n} texts have another number of words than times; they are kept without words",
    ),
    "words_outside": ("warning", "{n} chunks have words outside their own times"),
    "zero_length": ("info", "{n} chunks have no length"),
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
