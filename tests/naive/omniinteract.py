"""OmniInteract scoring, slow and obvious: standard library only, one sample after the other.

Written from the rules alone; shares nothing with the package. Answers come from a function.
"""

from __future__ import annotations

import json
import math
import os
import re

DEFAULTS = dict(
    last_slot_tail_sec=60.0,
    w_ack=0.2,
    decay_alpha=1.0,
    decay_gamma=1.0,
    core_quality_threshold=0.5,
    partial_quality_threshold=0.5,
    no_unmatched_fp=False,
    no_interrupted_output_eval=False,
)
SCENES = ("multi_turn", "nested", "1QnA")


class SampleFailed(Exception):
    pass


class JudgeError(Exception):
    pass


# ------------------------------------------------------------------ 2 value parsing
def parse_time(v):
    if isinstance(v, (int, float)):
        try:
            return float(v)
        except OverflowError:
            return None
    if not isinstance(v, str):
        return None
    s = v.strip()
    try:
        return float(s)
    except ValueError:
        pass
    parts = s.split(":")
    try:
        if len(parts) == 2:
            return float(parts[0]) * 60 + float(parts[1])
        if len(parts) == 3:
            return float(parts[0]) * 3600 + float(parts[1]) * 60 + float(parts[2])
    except ValueError:
        pass
    return None


def parse_bool(v):
    if isinstance(v, bool):
        return v
    if isinstance(v, (int, float)):
        return v != 0
    return str(v).strip().lower() in ("1", "true", "yes", "y", "t")


def text_of(v):
    return str(v or "")


def clamp(x):
    return max(0.0, min(1.0, x))  # NaN -> 1.0


_CJK = re.compile("[\u4e00-\u9fff]")


def has_cjk(s):
    return _CJK.search(s) is not None


def decay(t, peak, end, alpha, gamma):
    if t <= peak:
        return 1.0
    if end <= peak or t >= end:
        return 0.0
    return clamp(1.0 - alpha * ((t - peak) / (end - peak)) ** gamma)


# ------------------------------------------------------------------ 3 annotations
def read_rows(root):
    if isinstance(root, dict):
        root = root.get("items")
    if not isinstance(root, list):
        return []
    rows = []
    for r in root:
        if not isinstance(r, dict):
            continue
        q, a = parse_time(r.get("question_time")), parse_time(r.get("answer_time"))
        if q is None or a is None:
            continue
        rows.append(
            dict(
                q=q,
                a=a,
                question=text_of(r.get("question_text")),
                answer=text_of(r.get("answer_text")),
                type=text_of(r.get("question_type")).strip().lower() or "unknown",
                interrupted=parse_bool(r.get("is_interrupted")),
            )
        )
    rows.sort(key=lambda r: (r["q"], r["a"]))
    return rows


def read_1qna(root):
    if not isinstance(root, dict):
        raise SampleFailed("1QnA root is not an object")
    know = text_of(root.get("inferred_knowledge")).strip()
    conv, answers = root.get("conversations"), root.get("answers")
    out = []
    if isinstance(conv, list):
        user = next((e for e in conv if isinstance(e, dict) and e.get("from") == "user"), None)
        if user is not None:
            qt, q = parse_time(user.get("timestamp")), text_of(user.get("value"))
        else:
            qt, q = parse_time(root.get("question_time")), text_of(root.get("question_text"))
        if know:
            q = (know + "\n\n" + q).strip()
        for e in conv:
            if not isinstance(e, dict) or e.get("from") != "assistant":
                continue
            t = parse_time(e.get("timestamp"))
            if t is not None:
                out.append(
                    dict(
                        a=t,
                        answer=text_of(e.get("value")),
                        label=text_of(e.get("label")),
                        interrupted=parse_bool(e.get("interrupted")),
                    )
                )
    elif isinstance(answers, list):
        qt, q = parse_time(root.get("question_time")), text_of(root.get("question_text"))
        for e in answers:
            if not isinstance(e, dict):
                continue
            t = parse_time(e.get("answer_time"))
            if t is not None:
                key = "interrupted" if "interrupted" in e else "is_interrupted"
                out.append(
                    dict(
                        a=t,
                        answer=text_of(e.get("answer_text")),
                        label=text_of(e.get("label")),
                        interrupted=parse_bool(e.get(key)),
                    )
                )
    else:
        raise SampleFailed("1QnA without a list")
    out.sort(key=lambda r: r["a"])
    return (0.0 if qt is None else qt), q, out


# ------------------------------------------------------------------ 4 slots
def make_slot(
    sid,
    start,
    t_a,
    end,
    boundary,
    qtype,
    interrupted,
    question,
    answer,
    turn,
    step=None,
    label="",
    pair=None,
    role=None,
):
    return dict(
        slot_id=sid,
        start=start,
        t_a=t_a,
        end=end,
        boundary=boundary,
        effective_boundary="hard" if interrupted else boundary,
        question_type=qtype,
        interrupted=interrupted,
        label=label,
        step=step,
        turn=turn,
        pair=pair,
        role=role,
        question=question,
        answer=answer,
    )


def build_slots(root, scene, tail):
    slots = []
    if scene == "multi_turn":
        rows = read_rows(root)
        for i, r in enumerate(rows):
            end = rows[i + 1]["q"] if i + 1 < len(rows) else r["a"] + tail
            slots.append(
                make_slot(
                    i + 1,
                    r["q"],
                    r["a"],
                    max(end, r["q"]),
                    "hard",
                    r["type"],
                    r["interrupted"],
                    r["question"],
                    r["answer"],
                    i + 1,
                )
            )
    elif scene == "1QnA":
        qt, q, ans = read_1qna(root)
        for i, r in enumerate(ans):
            start = qt if i == 0 else r["a"]
            end = ans[i + 1]["a"] if i + 1 < len(ans) else r["a"] + tail
            slots.append(
                make_slot(
                    i + 1,
                    start,
                    r["a"],
                    max(end, start),
                    "soft",
                    r["label"].strip().lower() or "step",
                    r["interrupted"],
                    q,
                    r["answer"],
                    1,
                    step=i + 1,
                    label=r["label"],
                )
            )
    elif scene == "nested":
        rows = read_rows(root)
        if len(rows) < 2:
            raise SampleFailed("nested: fewer than two rows")
        pairs, i = [], 0
        while i < len(rows):
            o = rows[i]
            j = next(
                (
                    j
                    for j in range(i + 1, len(rows))
                    if o["q"] < rows[j]["q"] < o["a"] and rows[j]["a"] <= o["a"]
                ),
                None,
            )
            if j is None:
                raise SampleFailed("nested: row without inner")
            pairs.append((o, rows[j]))
            i = j + 1
        for k, (o, n) in enumerate(pairs):
            end = max(pairs[k + 1][0]["q"] if k + 1 < len(pairs) else o["a"] + tail, o["a"])
            slots.append(
                make_slot(
                    2 * k + 1,
                    o["q"],
                    o["a"],
                    end,
                    "hard",
                    o["type"],
                    o["interrupted"],
                    o["question"],
                    o["answer"],
                    k + 1,
                    pair=k + 1,
                    role="outer",
                )
            )
            slots.append(
                make_slot(
                    2 * k + 2,
                    n["q"],
                    n["a"],
                    o["a"],
                    "hard",
                    n["type"],
                    n["interrupted"],
                    n["question"],
                    n["answer"],
                    k + 1,
                    pair=k + 1,
                    role="inner",
                )
            )
    else:
        raise SampleFailed("unknown scene type")
    return slots


# ------------------------------------------------------------------ 5 transcripts
def read_chunks(root):
    raw = root.get("chunks") if isinstance(root, dict) else None
    if not isinstance(raw, list):
        return []
    chunks = []
    for i, c in enumerate(raw):
        if not isinstance(c, dict):
            continue
        ts = c.get("timestamp")
        if not isinstance(ts, list) or len(ts) != 2:
            continue
        s, e = parse_time(ts[0]), parse_time(ts[1])
        if s is None or e is None:
            continue
        if e < s:
            s, e = e, s
        words = []
        aw = c.get("aligned_words")
        if isinstance(aw, list):
            for w in aw:
                if not isinstance(w, dict):
                    continue
                ws, we = parse_time(w.get("start")), parse_time(w.get("end"))
                if ws is None or we is None:
                    continue
                if we < ws:
                    ws, we = we, ws
                words.append((ws, we, text_of(w.get("text"))))
            words.sort(key=lambda w: (w[0], w[1]))
        chunks.append(dict(id=i, start=s, end=e, text=text_of(c.get("text")), words=words))
    chunks.sort(key=lambda c: (c["start"], c["end"], c["id"]))
    return chunks


# ------------------------------------------------------------------ 6 assignment
def assign(chunks, slots):
    got, unmatched = {s["slot_id"]: [] for s in slots}, []
    for c in chunks:
        t, best = c["start"], None
        for s in slots:
            if s["start"] <= t < s["end"] and (
                best is None or (s["start"], s["slot_id"]) > (best["start"], best["slot_id"])
            ):
                best = s
        if best is None:
            unmatched.append(c)
        else:
            got[best["slot_id"]].append(c)
    return got, unmatched


# ------------------------------------------------------------------ 7 word split
def join_tokens(tokens):
    joined = "".join(tokens)
    return joined if has_cjk(joined) else " ".join(tokens)


def part_of(c, part, words, text, end_limit, start=None, end=None):
    s, e = (c["start"], c["end"]) if start is None else (start, end)
    return dict(
        id=c["id"],
        part=part,
        start=s,
        end=e,
        spill=e > end_limit,
        text=text,
        words=words,
        full=c["text"],
    )


def split_chunk(c, slot):
    """-> (early part or None, core part or None)"""
    t_a, t_end = slot["t_a"], slot["end"]
    whole = lambda: part_of(c, "whole", c["words"], c["text"], t_end)
    if not (c["start"] < t_a):
        return None, whole()
    if not (t_a < c["end"]) or not c["words"]:
        return whole(), None
    res = []
    for name, words in (
        ("early", [w for w in c["words"] if w[0] < t_a]),
        ("core", [w for w in c["words"] if not w[0] < t_a]),
    ):
        text = join_tokens([w[2] for w in words if w[2]]).strip()
        res.append(
            part_of(c, name, words, text, t_end, words[0][0], words[-1][1]) if text else None
        )
    if res[0] is None and res[1] is None:
        return whole(), None
    return res[0], res[1]


# ------------------------------------------------------------------ 8 stage texts
def stage_text(parts):
    return "".join(p["text"] for p in parts).strip()


def stage_context(chunks, parts):
    ids = {p["id"] for p in parts}
    ctx = "".join(c["text"].strip() for c in chunks if c["id"] in ids).strip()
    if not ctx:
        ctx = "".join(p["full"] or p["text"] for p in parts).strip()
    return ctx


# ------------------------------------------------------------------ 10 answers
_NUM = re.compile(r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?")
_DEC = json.JSONDecoder()


def find_object(raw):
    i = raw.find("{")
    while i >= 0:
        try:
            v, _ = _DEC.raw_decode(raw, i)
            if isinstance(v, dict):
                return v or None
        except (ValueError, RecursionError):
            pass
        i = raw.find("{", i + 1)
    return None


def as_number(v):
    try:
        return float(v)
    except (TypeError, ValueError, OverflowError):
        return None


def parse_early(raw):
    o = find_object(raw)
    flag = raw if o is None else text_of(o.get("flag"))
    flag = flag.lower().replace("-", "_").replace(" ", "")
    parse = "failed" if o is None else "json"
    if "hallucination" in flag:
        return "hallucination", 0.0, parse
    if "neutral" in flag:
        n = as_number(o["score"]) if o is not None and "score" in o else None
        return "neutral", 1.0 if n is None else clamp(n), parse
    return "neutral", 0.0, parse


def parse_core(raw):
    o = find_object(raw)
    phrase, spoiler, n, parse = "", False, None, "failed"
    if o is not None:
        phrase = text_of(o.get("trigger_phrase")).strip()
        spoiler = parse_bool(o.get("spoiler"))
        n = as_number(o.get("score", 0))
        parse = "json"
    if n is None:
        m = _NUM.search(raw)
        n, parse = (float(m.group()), "number") if m else (0.0, "failed")
    return clamp(n), phrase, spoiler, parse


def parse_partial(raw):
    o = find_object(raw)
    if o is None:
        return 0.0, False, "failed"
    n = as_number(o.get("score"))
    return (0.0 if n is None else clamp(n)), parse_bool(o.get("hallucination")), "json"


# ------------------------------------------------------------------ 12.1 / 12.2 anchor
_QUOTES = "\"'\u201c\u201d\u2018\u2019"


def char_times(part):
    text = part["text"]
    n = len(text)
    if not n:
        return []
    toks = [(w[0], w[2]) for w in part["words"] if w[2]]
    if not toks:
        return [None] * n
    sep = "" if has_cjk("".join(t for _, t in toks)) else " "
    seq = []
    for i, (s, t) in enumerate(toks):
        if i and sep:
            seq.append(None)
        seq.extend([s] * len(t))
    built = sep.join(t for _, t in toks).strip()
    if built == text:
        return seq[:n]
    p = text.find(built)
    if p < 0:
        return [None] * n
    return ([None] * p + seq + [None] * n)[:n]


def find_anchor(phrase, parts):
    needle = phrase.strip().strip(_QUOTES)
    if not needle:
        return None
    hay = "".join(p["text"] for p in parts)
    if not hay:
        return None
    pos = hay.find(needle)
    if pos < 0:
        pos = hay.lower().find(needle.lower())
        if pos < 0:
            return None
    times = []
    for p in parts:
        times.extend(char_times(p))
    for t in times[pos : pos + len(needle)]:
        if t is not None:
            return t
    return None


# ------------------------------------------------------------------ slot scoring
def prepare(gt, transcript, scene, opt):
    """Slots with their chunks and parts; the unmatched chunks. No judge needed."""
    if scene not in SCENES:
        raise SampleFailed("unknown scene type")
    slots = build_slots(gt, scene, opt["last_slot_tail_sec"])
    chunks = read_chunks(transcript)
    got, unmatched = assign(chunks, slots)
    work = []
    for s in slots:
        cs = got[s["slot_id"]]
        early, core = [], []
        for c in cs:
            e, k = split_chunk(c, s)
            if e is not None:
                early.append(e)
            if k is not None:
                core.append(k)
        key = lambda p: (p["start"], p["end"])
        early.sort(key=key)
        core.sort(key=key)
        work.append((s, cs, early, core))
    return work, unmatched


def slot_calls(w, later, opt):
    s, cs, early, core = w
    calls = []
    if early:
        calls.append(
            dict(
                slot_id=s["slot_id"],
                stage="early",
                actual_text=stage_text(early),
                full_context=stage_context(cs, early),
            )
        )
    if not s["interrupted"]:
        if core:
            calls.append(
                dict(
                    slot_id=s["slot_id"],
                    stage="core",
                    actual_text=stage_text(core),
                    full_context=stage_context(cs, core),
                    future_slots=later,
                )
            )
    elif cs and not opt["no_interrupted_output_eval"]:
        calls.append(
            dict(
                slot_id=s["slot_id"],
                stage="partial",
                actual_text="".join(c["text"] for c in cs).strip(),
            )
        )
    return calls


def score_slot(w, answers, opt, scene):
    s, cs, early, core = w
    al, ga = opt["decay_alpha"], opt["decay_gamma"]
    t_a, t_end, inter = s["t_a"], s["end"], s["interrupted"]
    r = dict(s)
    r["chunks"] = [c["id"] for c in cs]
    for name, parts in (("early", early), ("core", core)):
        r[name] = []
        for p in parts:
            d = dict(id=p["id"], part=p["part"], start=p["start"], end=p["end"], spill=p["spill"])
            if p["part"] != "whole":
                d["text"] = p["text"]
            r[name].append(d)
    r["text_early"], r["text_core"] = stage_text(early), stage_text(core)
    w_ack = 0.0 if scene == "1QnA" and s["step"] > 1 else opt["w_ack"]
    w_core = 1.0 - w_ack
    fp, tp_ack, tp_core = 0, 0.0, 0.0
    if early:
        t = decay(early[0]["start"], s["start"], t_a, al, ga)
        cat, q, parse = parse_early(answers["early"])
        if cat == "hallucination":
            fp += 1
        else:
            tp_ack = t * q * w_ack
        r["ack"] = dict(category=cat, S=q, T=t, W=w_ack, parse=parse)
    if core and not inter:
        q, phrase, spoiler, parse = parse_core(answers["core"])
        fallback = t_a if core[0]["part"] != "whole" else max(core[0]["start"], t_a)
        anchor = find_anchor(phrase, core) if q > 0 else None
        t_used = max(fallback if anchor is None else anchor, t_a)
        t = decay(t_used, t_a, t_end, al, ga)
        low = q < opt["core_quality_threshold"]
        if low:
            fp += 1
        else:
            tp_core = t * q * w_core
        r["core_score"] = dict(
            S=q,
            T=t,
            W=w_core,
            anchor=anchor,
            anchor_from="first_chunk" if anchor is None else "phrase",
            fallback=fallback,
            t_used=t_used,
            low_quality=low,
            spoiler=spoiler,
            phrase=phrase,
            parse=parse,
        )
    spill = 0.0
    if cs and s["effective_boundary"] == "hard":
        spill = max(0.0, max(c["end"] for c in cs) - t_end)
        if spill > 0:
            fp += 1
    r["spill"], r["spill_s"] = spill > 0, spill
    if inter:
        d = dict(
            has_output=bool(cs),
            status="no_output",
            quality=None,
            low_quality=False,
            hallucination=False,
            TP=0.0,
            FP=0,
            FN=0,
        )
        if cs and opt["no_interrupted_output_eval"]:
            d["status"] = "skipped"
        elif cs:
            q, hall, _ = parse_partial(answers["partial"])
            low = q < opt["partial_quality_threshold"]
            d.update(
                status="ok",
                quality=q,
                low_quality=low,
                hallucination=hall,
                TP=0.0 if low else q,
                FP=int(low) + int(spill > 0) + int(hall),
                FN=int(low),
            )
        r["interruption"] = d
    r["TP_ack"], r["TP_core"] = tp_ack, tp_core
    r["TP"], r["FP"] = clamp(tp_ack + tp_core), fp
    r["FN"] = 0 if inter else int(tp_core <= 0)
    return r


# ------------------------------------------------------------------ 16 sample totals
def prf(tp, fp, fn):
    p = tp / (tp + fp) if tp + fp > 0 else 0.0
    r = tp / (tp + fn) if tp + fn > 0 else 0.0
    return p, r, (2 * p * r / (p + r) if p + r > 0 else 0.0)


def row(slots, tp, fp, fn):
    p, r, f = prf(tp, fp, fn)
    return dict(slots=slots, TP=tp, FP=fp, FN=fn, precision=p, recall=r, f1=f)


def score_sample(gt, transcript, scene, judge, opt=DEFAULTS, calls=None):
    """judge(call) -> raw answer text (raise JudgeError on a transport error)."""
    work, unmatched = prepare(gt, transcript, scene, opt)
    ids = [w[0]["slot_id"] for w in work]
    slots = []
    for k, w in enumerate(work):
        answers = {}
        for call in slot_calls(w, ids[k + 1 :], opt):
            if calls is not None:
                calls.append(call)
            answers[call["stage"]] = judge(call)
        slots.append(score_slot(w, answers, opt, scene))
    n_un = 0 if opt["no_unmatched_fp"] else len(unmatched)
    total = row(
        len(slots),
        sum(s["TP"] for s in slots),
        sum(s["FP"] for s in slots) + n_un,
        sum(s["FN"] for s in slots),
    )
    total["unmatched"] = len(unmatched)
    return dict(scene=scene, slots=slots, unmatched=[c["id"] for c in unmatched], summary=total)


# ------------------------------------------------------------------ 17-21 aggregation
def group(slots):
    return row(
        len(slots),
        sum(s["TP"] for s in slots),
        sum(s["FP"] for s in slots),
        sum(s["FN"] for s in slots),
    )


def minus(a, b):
    return row(
        max(0, a["slots"] - b["slots"]),
        a["TP"] - b["TP"],
        max(0, a["FP"] - b["FP"]),
        max(0, a["FN"] - b["FN"]),
    )


def plus(*rows):
    return row(*(sum(r[k] for r in rows) for k in ("slots", "TP", "FP", "FN")))


def quality(slots):
    n = len(slots)
    cs = [s.get("core_score") for s in slots]
    return dict(
        slots=n,
        S_mean=sum(c["S"] for c in cs if c) / n if n else 0.0,
        T_mean=sum(c["T"] for c in cs if c) / n if n else 0.0,
    )


def is_math(paths):
    return any("/1q1a_math/" in p or "\\1q1a_math\\" in p for p in paths if p)


def aggregate(samples, opt=DEFAULTS):
    """samples: scored results, each with key `paths` for the maths test."""
    allslots = [s for r in samples for s in r["slots"]]
    by_scene, by_type, by_role = {}, {}, {}
    for r in samples:
        for s in r["slots"]:
            by_scene.setdefault(r["scene"], []).append(s)
            by_type.setdefault(s["question_type"], []).append(s)
            if s.get("role"):
                by_role.setdefault(s["role"], []).append(s)
    n_un = sum(len(r["unmatched"]) for r in samples)
    inter = [s for s in allslots if s["interrupted"]]
    nested = group(by_scene.get("nested", []))
    rt = minus(group(by_type.get("realtime", [])), group(by_role.get("inner", [])))
    pa = minus(group(by_type.get("proactive", [])), group(by_role.get("outer", [])))
    every = group(allslots)
    every = row(
        every["slots"],
        every["TP"],
        every["FP"] + (0 if opt["no_unmatched_fp"] else n_un),
        every["FN"],
    )
    out = dict(unmatched_chunks=n_un)
    out["categories"] = {
        "realtime": rt,
        "proactive": pa,
        "nested": nested,
        "1q1a": plus(rt, pa, nested),
        "1qna": group(by_scene.get("1QnA", [])),
        "all": every,
    }
    out["by_scene"] = {k: group(v) for k, v in by_scene.items()}
    out["by_question_type"] = {k: group(v) for k, v in by_type.items()}
    out["nested_by_role"] = {k: group(by_role.get(k, [])) for k in ("outer", "inner")}
    out["interrupted"] = group(inter)
    out["interrupted_diagnostic"] = group(
        [s["interruption"] for s in inter if s["interruption"]["status"] == "ok"]
    )
    # 19
    n = len(inter)
    m = [s for s in inter if s["chunks"]]
    j = [s for s in inter if s["interruption"]["status"] == "ok"]
    out["ids"] = dict(
        slots=n,
        no_output=n - len(m),
        with_output=len(m),
        judged=len(j),
        low_quality=sum(s["interruption"]["low_quality"] for s in j),
        hallucination=sum(s["interruption"]["hallucination"] for s in j),
        spill_total_s=sum(s["spill_s"] for s in m),
        NOR=(n - len(m)) / n if n else 0.0,
        PAQ=sum(s["interruption"]["quality"] for s in j) / len(j) if j else 0.0,
        CSM_SR=sum(s["spill_s"] > 0 for s in m) / len(m) if m else 0.0,
        CSM_AS=sum(s["spill_s"] for s in m) / len(m) if m else 0.0,
        spill_count=sum(s["spill_s"] > 0 for s in m),
    )
    # 20
    pairs = mo = mi = oe = good = 0
    tot = 0.0
    for r in samples:
        if r["scene"] != "nested":
            continue
        ss = r["slots"]
        for k in range(0, len(ss) - 1, 2):
            o, i = ss[k], ss[k + 1]
            pairs += 1
            a, b = o["TP_core"], i["TP_core"]
            mo += a <= 0
            mi += b <= 0
            if a > 0 and b > 0:
                ta, tb = (
                    c["t_used"] if c["anchor"] is None else c["anchor"]
                    for c in (o["core_score"], i["core_score"])
                )
                if tb <= ta:
                    tot += math.sqrt(a * b)
                    good += 1
                else:
                    oe += 1
    out["nccs"] = dict(
        NCCS=tot / pairs if pairs else 0.0,
        pairs=pairs,
        missed_outer=mo,
        missed_inner=mi,
        order_errors=oe,
        success=good,
        sum=tot,
        incomplete_pairs=0,
    )
    # 21
    out["quality"] = dict(
        overall=quality(allslots),
        non_interrupted=quality([s for s in allslots if not s["interrupted"]]),
        interrupted=quality(inter),
    )
    out["quality_by_scene"] = {k: quality(v) for k, v in by_scene.items()}
    out["_extra"] = dict(
        quality_by_question_type={k: quality(v) for k, v in by_type.items()},
        quality_by_role={k: quality(v) for k, v in by_role.items()},
    )
    ms = [s for r in samples if is_math(r.get("paths", ())) for s in r["slots"]]
    out["math"] = group(ms) if ms else None
    out["math_quality"] = quality(ms) if ms else None
    return out


# ------------------------------------------------------------------ 21 offline maths
def offline_math(records, answers):
    """answers: clip_name -> raw."""
    items, errors, sc = [], 0, []
    for r in records:
        d = dict(clip_name=r.get("clip_name"), status=r.get("status"), score=0.0)
        if r.get("status") == "ok":
            if not text_of(r.get("model_answer")).strip():
                sc.append(0.0)
            elif r["clip_name"] in answers:
                d["score"] = parse_core(answers[r["clip_name"]])[0]
                sc.append(d["score"])
            else:
                d["status"] = "judge_error"
                errors += 1
        items.append(d)
    return dict(
        average=sum(sc) / len(sc) if sc else 0.0,
        scored=len(sc),
        ok_records=sum(r.get("status") == "ok" for r in records),
        records=len(records),
        judge_errors=errors,
        items=items,
    )


# ------------------------------------------------------------------ 22 discovery
TRANSCRIPTS = (
    "precise_truncation.json",
    "wav_transcript_aligned.json",
    "wav_transcript.json",
    "output.json",
)


def find_dir(given, subset_hint, repo, out_root):
    p = given if os.path.isabs(given) else os.path.join(repo, given)
    if given and os.path.isdir(p):
        return given
    name = os.path.basename(given.rstrip("/"))
    if not name:
        return None
    parts = given.replace("\\", "/").split("/")
    subs = [s for s in ("1q1a_math", "1q1a", "1qna") if s in parts]
    subs += [s for s in ("1q1a_math", "1q1a", "1qna") if s not in subs]
    for cand in [os.path.join(out_root, name)] + [os.path.join(out_root, s, name) for s in subs]:
        if os.path.isdir(os.path.join(repo, cand)):
            return cand
    hits = []
    for d, ds, _ in os.walk(os.path.join(repo, out_root)):
        hits += [os.path.relpath(os.path.join(d, x), repo) for x in ds if x == name]
    return hits[0] if len(hits) == 1 else None


def discover(batch, repo, out_root, forced=None):
    maps = {}

    def scene_map(sub):
        if sub not in maps:
            maps[sub] = {}
            try:
                with open(
                    os.path.join(repo, "data", sub, "video_json_map.json"), encoding="utf-8"
                ) as f:
                    for e in json.load(f).get("entries") or []:
                        if isinstance(e, dict):
                            maps[sub][e.get("video")] = e.get("scene_type")
            except (OSError, ValueError):
                pass
        return maps[sub]

    out = []
    for r in batch.get("results") or []:
        if not isinstance(r, dict) or r.get("status", "ok") != "ok":
            continue
        video = text_of(r.get("video"))
        v = video.replace("\\", "/")
        ann = sub = rest = None
        if "/1qna/" in v.lower() or "videos_bench" in v:
            scene, sub = "1QnA", "1qna"
            parts = v.split("/")
            if "videos_bench" in parts:
                rest = "/".join(parts[parts.index("videos_bench") + 1 :])
                ann = os.path.join("data/1qna/annotations", os.path.splitext(rest)[0] + ".json")
        else:
            scene = None
            for cand in ("1q1a_math", "1q1a"):
                k = v.rfind(cand + "/")
                if k >= 0:
                    sub, rest = cand, v[k + len(cand) + 1 :]
                    break
            if sub:
                scene = scene_map(sub).get(rest)
            sub = next((c for c in ("1q1a_math", "1q1a") if c in v.split("/")), None)
            if sub:
                parts = v.split("/")
                tail = "/".join(parts[parts.index(sub) + 1 :])
                tail = tail[len("videos/") :] if tail.startswith("videos/") else tail
                ann = os.path.join("data", sub, "annotations", os.path.splitext(tail)[0] + ".json")
            if not scene:
                scene = (
                    "nested"
                    if any(x in v for x in ("/nested/", "/nested2/", "__nested__", "__nested2__"))
                    else "multi_turn"
                )
        od = find_dir(text_of(r.get("output_dir")), sub, repo, out_root)
        gt = ann if ann and os.path.isfile(os.path.join(repo, ann)) else ""
        mj = ""
        if od:
            for n in [forced] if forced else TRANSCRIPTS:
                if os.path.isfile(os.path.join(repo, od, n)):
                    mj = os.path.join(od, n)
                    break
        ok = bool(gt and mj)
        out.append(
            dict(
                status="ready" if ok else "missing",
                sample_id="%s__%s" % (sub, os.path.basename(od)) if ok else None,
                video=video,
                scene=scene,
                gt_json=gt,
                model_json=mj,
            )
        )
    return out


# ------------------------------------------------------------------ running a manifest
def load_json(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def load_manifest(path):
    with open(path, encoding="utf-8") as f:
        t = f.read()
    try:
        v = json.loads(t)
        if isinstance(v, dict) and isinstance(v.get("items"), list):
            v = v["items"]
        elif isinstance(v, dict):
            v = [v]
        return v
    except ValueError:
        return [json.loads(x) for x in t.splitlines() if x.strip()]


def run_manifest(items, base, judge_for, opt=DEFAULTS, calls=None):
    """-> results {sample_id: result}, not_scored {sample_id: reason}"""
    res, bad = {}, {}
    for it in items:
        sid = it.get("sample_id") or os.path.splitext(os.path.basename(it["gt_json"]))[0]
        try:
            why = "bad_annotation"
            gt = load_json(os.path.join(base, it["gt_json"]))
            why = "missing_transcript"
            tr = load_json(os.path.join(base, it["model_json"]))
            why = "bad_annotation"
            cl = [] if calls is not None else None
            r = score_sample(gt, tr, it["scene_type"], judge_for(sid), opt, cl)
        except (OSError, ValueError, SampleFailed):
            bad[sid] = why
            continue
        if calls is not None:
            calls[sid] = cl
        r["sample_id"] = sid
        r["paths"] = [it["gt_json"], it["model_json"]]
        res[sid] = r
    return res, bad
