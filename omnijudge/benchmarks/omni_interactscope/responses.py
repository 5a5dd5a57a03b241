"""From outputs to effective responses (InteractScope rule 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.windows import EPSILON, Bools, Floats, Ints

ABSTAIN = "ABSTAIN"
_BLANKS = " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
_BLANKS += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_TRIMMED = _BLANKS + ".!。！"


@dataclass(frozen=True, eq=False)
class Responses:
    """Effective responses of a block of samples, by (sample, time, place in the file).

    Attributes:
        offsets: CSR offsets by sample, (samples + 1,).
        time: seconds, (responses,): that of the first member.
        members: rows of the chunk table, (members,).
        member_offsets: CSR offsets of the members by response, (responses + 1,).
        before_request: outputs earlier than the request, by sample, (samples,).
    """

    offsets: Ints
    time: Floats
    members: Ints
    member_offsets: Ints
    before_request: Ints

    @property
    def first(self) -> Ints:
        """Chunk row of each response's first member, (responses,)."""
        return self.members[self.member_offsets[:-1]]

    def __len__(self) -> int:
        return len(self.time)


def is_silence(text: pa.Array, has_tools: Bools) -> Bools:
    """Which outputs say nothing: no tools, and no text but blanks, full stops or ABSTAIN.

    Args:
        text: texts, (outputs,); null is empty.
        has_tools: whether the list of tools has entries, be they blank names.
    """
    bare = pc.utf8_upper(pc.utf8_trim(pc.fill_null(text, ""), characters=_TRIMMED))
    empty = pc.is_in(bare, value_set=pa.array(["", ABSTAIN]))
    silent: Bools = np.asarray(empty) & ~has_tools
    return silent


def effective_responses(
    sample: Ints,
    time: Floats,
    output_index: Ints,
    silent: Bools,
    fragment: Bools,
    request_time: Floats,
    options: Options,
) -> Responses:
    """Drops silence and early outputs, sorts, and groups fragments.

    Args:
        sample: sample of each output, 0 <= sample < samples, (outputs,).
        time: seconds, (outputs,).
        output_index: place of each output in its file.
        silent: outputs that say nothing.
        fragment: outputs of trajectories that were written in fragments.
        request_time: by sample, NaN where there is no request (T8-A), (samples,).
        options: ``pre_query``, ``grouping_mode`` and ``group_span`` count.
    """
    samples = len(request_time)
    # NaN compares false: without a request nothing is early.
    early = ~silent & (time < request_time[sample] - EPSILON)
    before_request = np.bincount(sample[early], minlength=samples).astype(np.int64)
    kept = np.flatnonzero(~silent & ~early if options.pre_query == "drop" else ~silent)
    kept = kept[_in_time(sample[kept], time[kept], output_index[kept])]
    opens = _group_starts(sample[kept], time[kept], fragment[kept], options)
    starts = np.flatnonzero(opens)
    first = kept[starts]
    counts = np.bincount(sample[first], minlength=samples)
    return Responses(
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        time=time[first],
        members=kept.astype(np.int64),
        member_offsets=np.concatenate([starts, [len(kept)]]).astype(np.int64),
        before_request=before_request,
    )


def _in_time(sample: Ints, time: Floats, output_index: Ints) -> Ints:
    """Order by (sample, time, place in the file). Most files are in order already."""
    order = np.arange(len(sample))
    step = np.diff(sample)
    falls = (time[1:] < time[:-1]) | ((time[1:] == time[:-1]) & (np.diff(output_index) < 0))
    if (step < 0).any():
        rows = order
    else:
        rows = np.flatnonzero(np.isin(sample, sample[1:][falls & (step == 0)]))
    order[rows] = rows[np.lexsort((output_index[rows], time[rows], sample[rows]))]
    return order


def _group_starts(sample: Ints, time: Floats, fragment: Bools, options: Options) -> Bools:
    """Where a response begins, among outputs sorted by (sample, time)."""
    opens = np.ones(len(time), dtype=np.bool_)
    if not fragment.any():
        return opens
    span = options.group_span + EPSILON
    same = (sample[1:] == sample[:-1]) & fragment[1:]
    # Later than the span after its very neighbour: opens a group in either mode.
    joins = same & (time[1:] - time[:-1] <= span)
    opens[1:] = ~joins
    if options.grouping_mode == "anchored":
        # Within a stretch of close neighbours the span counts from the group's first member.
        anchor = 0.0
        for i in np.flatnonzero(joins) + 1:
            if opens[i - 1]:
                anchor = time[i - 1]
            opens[i] = time[i] - anchor > span
    return opens


def response_texts(texts: pa.Array, responses: Responses) -> pa.Array:
    """Text of each response: the members' texts that are not blank, joined by one blank.

    A response of one member keeps its text as written.
    """
    texts = pc.fill_null(texts, "")
    result = texts.take(pa.array(responses.first))
    several = np.flatnonzero(np.diff(responses.member_offsets) > 1)
    if not len(several):
        return result
    values = result.to_pylist()
    bounds = responses.member_offsets.tolist()
    for i in several.tolist():
        parts = texts.take(pa.array(responses.members[bounds[i] : bounds[i + 1]])).to_pylist()
        values[i] = " ".join(part for part in parts if part.strip())
    return pa.array(values, pa.string())


def tool_set(names: Sequence[str | None], case_sensitive: bool = True) -> frozenset[str]:
    """Names of tools as they are compared (rule 4): trimmed, blank ones gone, each once."""
    trimmed = (name.strip() for name in names if name)
    return frozenset(n if case_sensitive else n.casefold() for n in trimmed if n)
