"""Which format a file is in, by its content alone; names and suffixes are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnijudge.transcripts.findings import Refusal
from omnijudge.transcripts.millisecond import is_pairs
from omnijudge.transcripts.options import ReadOptions
from omnijudge.values import has_cjk

_EVENT_PREFIXES = (
    "session.",
    "response.",
    "input_audio_buffer.",
    "output_audio_buffer.",
    "conversation.",
)
_EVENT_TYPES = frozenset(
    (
        "stream_start",
        "output_transcription",
        "input_transcription",
        "turn_complete",
        "interrupted",
    )
)
_EVENT_KEYS = ("serverContent", "server_content", "setupComplete", "realtimeInput")
_SEGMENT_KEYS = ("seek", "tokens", "avg_logprob", "words", "no_speech_prob")
_WORD_KEYS = ("words", "word_segments", "time_stamps")

Object = Mapping[str, Any]


def detect_json(value: Any, several_lines: bool, options: ReadOptions) -> str | None:
    """The format of parsed JSON; None for an empty list, which has none.

    Args:
        value: the JSON value, or the list of the values of JSON lines.
        several_lines: whether it was more than one JSON line.
        options: benchmark and profile decide a few open cases.

    Raises:
        Refusal: ``ambiguous_format``, ``no_times``, ``several_results``, ``unknown_format`` or
            ``wrong_format``.
    """
    published = options.profile == "published" and options.benchmark == "omniinteract"
    root = value if isinstance(value, dict) else None
    first = value[0] if isinstance(value, list) and value else None
    lead: Object = root if root is not None else first if isinstance(first, dict) else {}
    only = root is not None or _length(value) == 1

    if is_responses(lead):
        return "oi_responses"
    if is_model_output(lead):
        return "oi_model_output"
    if is_event(lead):
        return "realtime_events"
    if root is not None and isinstance(root.get("chunks"), list):
        return _with_chunks(root, published)
    if is_sentences(root, first):
        return "sentences"
    if _result_format(lead) is not None:
        if not only:
            raise several_results(value, several_lines)
        return _result_format(lead)
    if root is not None and any(isinstance(root.get(key), list) for key in _WORD_KEYS):
        return "word_list"
    if root is None and "word" in lead:
        return "word_list"
    if root is None and "text" in lead and "start" in lead:
        return _text_and_start(value, lead, options)
    if published and not several_lines:
        return "omniinteract"
    if root is not None and str(root.get("text") or "").strip():
        raise Refusal(
            "no_times",
            "there is `text` at the root and nothing with times; ask the recogniser for segment "
            "or word timestamps",
        )
    if value == []:
        return None
    if isinstance(first, list) and _is_tuple_dump(first):
        raise Refusal(
            "wrong_format",
            "the segments are written as arrays, which do not name their values; write segments "
            "as objects with `start`, `end` and `text` (setting `format`)",
            "[0]",
        )
    if options.benchmark == "omniinteract" and not several_lines:
        return "omniinteract"
    raise unknown_json(value)


def matches(format_name: str, value: Any) -> bool:
    """Whether parsed JSON can be read as a format that was named in the settings."""
    if value == []:
        return True
    root = value if isinstance(value, dict) else {}
    first = value[0] if isinstance(value, list) and value else None
    lead: Object = root or (first if isinstance(first, dict) else {})
    tests: dict[str, Callable[[], bool]] = {
        "omniinteract": lambda: True,
        "vllm_omniinteract": lambda: _is_vllm(root),
        "sentences": lambda: _could_be_sentences(root, first),
        "whisper_chunks": lambda: (
            _is_list(root, "chunks")
            and all("timestamp" in c for c in root["chunks"][:1] if isinstance(c, dict))
        ),
        "whisper_segments": lambda: (
            _is_list(lead, "segments")
            or isinstance(first, list)
            or (not root and "text" in lead and "start" in lead)
        ),
        "word_list": lambda: (
            any(_is_list(root, key) for key in _WORD_KEYS)
            or (not root and ("word" in lead or ("text" in lead and _has_word_time(lead))))
        ),
        "whisper_cpp": lambda: _is_list(lead, "transcription"),
        "dashscope_asr": lambda: _is_list(lead, "transcripts"),
        "funasr": lambda: _is_funasr(lead),
        "realtime_events": lambda: any(
            is_event(e) for e in (value if isinstance(value, list) else [value])
        ),
        "oi_responses": lambda: is_responses(lead),
        "oi_model_output": lambda: is_model_output(lead),
    }
    return tests[format_name]()


def is_event(event: Any) -> bool:
    """Whether an object is an event of a realtime log (row 3)."""
    if not isinstance(event, dict):
        return False
    kind = event.get("type")
    if isinstance(kind, str) and (kind.startswith(_EVENT_PREFIXES) or kind in _EVENT_TYPES):
        return True
    return any(key in event for key in _EVENT_KEYS)


def is_responses(lead: Object) -> bool:
    """Row 1: the adapters' ``responses.jsonl``."""
    return "triggered_at_second" in lead


def is_model_output(lead: Object) -> bool:
    """Row 2: the adapters' ``model_output.jsonl``."""
    return (
        _is_number(lead.get("second"))
        and "text" in lead
        and ("audio_bytes" in lead or "is_listen" in lead)
    )


def is_sentences(root: Object | None, first: Any) -> bool:
    """Row 5 but for the part about ``chunks``."""
    if root is not None:
        return isinstance(root.get("sentences"), list)
    if not isinstance(first, dict):
        return False
    if "sentence" in first:
        return True
    if "content" in first and "start" in first:
        return True
    return ("text" in first or "content" in first) and ("current_time" in first or "time" in first)


def is_result(head: list[Any]) -> bool:
    """Whether the first element of a list is a whole result of a recogniser (rows 8 to 11)."""
    return bool(head) and isinstance(head[0], dict) and _result_format(head[0]) is not None


def several_results(value: Any, several_lines: bool) -> Refusal:
    """Refusal of a file that holds more than one result."""
    what = "lines" if several_lines else "elements"
    keys = [str(v.get("key", n)) for n, v in enumerate(value) if isinstance(v, dict)]
    shown = ", ".join(keys[:5]) + (", ..." if len(keys) > 5 else "")
    return Refusal(
        "several_results",
        f"{len(value)} {what}, each a result of its own ({shown}); write one file per clip",
    )


def unknown_json(value: Any) -> Refusal:
    """Refusal of JSON that no format fits."""
    return Refusal(
        "unknown_format",
        f"{describe(value)} fits no known format; name it with the setting `format`",
    )


def describe(value: Any) -> str:
    """What stands at the top of parsed JSON, for messages."""
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:8]) or "none"
        return f"an object with the keys {keys}"
    if isinstance(value, list):
        if not value:
            return "an empty list"
        if isinstance(value[0], dict):
            return f"a list whose first element has the keys {', '.join(list(value[0])[:8])}"
        return f"a list of {type(value[0]).__name__} values"
    return f"a single {type(value).__name__} value"


def _with_chunks(root: Object, published: bool) -> str:
    chunks = root["chunks"]
    if _is_vllm(root):
        return "vllm_omniinteract"
    head: Object = next((c for c in chunks if isinstance(c, dict)), {})
    if "sentence" in head or isinstance(root.get("sentences"), list):
        return "sentences"
    if "timestamp" not in head and any(k in head for k in ("start", "current_time", "time")):
        return "sentences"
    last = chunks[-1].get("timestamp") if chunks and isinstance(chunks[-1], dict) else None
    open_end = isinstance(last, list) and len(last) == 2 and _is_number(last[0]) and last[1] is None
    if not open_end or published:
        return "omniinteract"
    aligned = any(isinstance(c, dict) and "aligned_words" in c for c in chunks)
    return "omniinteract" if aligned else "whisper_chunks"


def _is_vllm(root: Object) -> bool:
    chunks = root.get("chunks")
    return isinstance(chunks, list) and (
        "timestamp_semantics" in root
        or any(isinstance(c, dict) and "response_id" in c for c in chunks)
    )


def _result_format(lead: Object) -> str | None:
    if _is_list(lead, "segments"):
        return "whisper_segments"
    if _is_list(lead, "transcription"):
        return "whisper_cpp"
    if _is_list(lead, "transcripts"):
        return "dashscope_asr"
    return "funasr" if _is_funasr(lead) else None


def _is_funasr(lead: Object) -> bool:
    if "sentence_info" in lead:
        return True
    pairs = lead.get("timestamp")
    if "text" not in lead or not is_pairs(pairs):
        return False
    # No pairs at all is silence, or a text that was never given times.
    return bool(pairs) or not str(lead["text"] or "").strip()


def _text_and_start(value: list[Any], lead: Object, options: ReadOptions) -> str:
    if any(key in lead for key in _SEGMENT_KEYS):
        return "whisper_segments"
    if options.benchmark == "omni_duplexeval":
        return "sentences"
    texts = [v["text"].strip() for v in value if isinstance(v, dict) and _is_text(v.get("text"))]
    if len(value) >= 3 and all(map(is_one_word, texts)):
        raise Refusal(
            "ambiguous_format",
            "the entries could be words or segments of one word each, which would give different "
            "chunks; write `format: word_list` or `format: whisper_segments`",
        )
    return "whisper_segments"


def is_one_word(text: str) -> bool:
    """Whether a text is one word: no inner blank; with CJK at most four characters."""
    return len(text.split(None, 1)) == 1 and (len(text.strip()) <= 4 or not has_cjk(text))


def _could_be_sentences(root: Object, first: Any) -> bool:
    if _is_list(root, "sentences"):
        return True
    if _is_list(root, "chunks"):
        first = next((c for c in root["chunks"] if isinstance(c, dict)), {"text": "", "time": 0})
    if not isinstance(first, dict):
        return False
    return any(k in first for k in ("sentence", "text", "content")) and any(
        k in first for k in ("start", "current_time", "time")
    )


def _has_word_time(lead: Object) -> bool:
    return any(k in lead for k in ("start", "end", "start_time", "end_time", "timestamp"))


def _is_tuple_dump(first: list[Any]) -> bool:
    return sum(map(_is_number, first)) >= 2 and any(isinstance(part, str) for part in first)


def _is_list(holder: Object, key: str) -> bool:
    return isinstance(holder.get(key), list)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0
