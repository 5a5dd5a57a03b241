"""An open model in this process, through vLLM."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.errors import ConfigError, OmnijudgeError, ResourceError
from omnijudge.judging.engines import model_files, vllm_setup
from omnijudge.judging.engines.reasoning import REASONING_ONLY, Marks, split_reasoning
from omnijudge.judging.engines.seeds import request_seed
from omnijudge.judging.types import Identity, Message, Reply, Request

if TYPE_CHECKING:
    from omnijudge.config import JudgeConfig

CLOSING_TOKENS = 16
"""Room for the text that closes reasoning when its budget is used up."""

_COUNTERS = (
    "prefix_cache_queries",
    "prefix_cache_hits",
    "prompt_tokens",
    "prompt_tokens_cached",
    "generation_tokens",
    "num_preemptions",
)

_open: set[int] = set()
_closed: list[Any] = []


class VllmEngine:
    """Answers with a model that vLLM runs on this machine's GPUs, or on its CPU."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        where = f"judge {judge.name}"
        self._judge = judge
        self._budget = None if isinstance(judge.thinking, str) else judge.thinking.budget
        vllm_setup.check_machine(judge)
        model = model_files.find_model(str(judge.model), judge.revision, where)
        model_files.check_complete(model, where, weights=_reads_weights(judge))
        vllm_setup.prepare_environment(model.is_local)
        self._vllm = _import_vllm(where)
        known = self._vllm.EngineArgs.__dataclass_fields__
        arguments = vllm_setup.llm_arguments(judge, model, known)
        if self._budget is not None:
            _require_budget(self._vllm, where)
            arguments.setdefault("reasoning_parser", "deepseek_r1")
        self.llm = _load(self._vllm, arguments, where)
        # A folder's place is nobody's business but this machine's.
        self._model = Path(model.name).name
        if model.revision is not None:
            self._model = f"{model.name}@{model.revision}"
        self._tokenizer = self.llm.get_tokenizer()
        self._limit = int(self.llm.llm_engine.model_config.max_model_len)
        self._template = _template(self._tokenizer, arguments.get("chat_template"), where)
        self._template_kwargs = _template_kwargs(self._template, judge)
        _open.add(id(self))
        self._marks = Marks()
        if self._budget is not None:
            self._marks = _marks(self._tokenizer, arguments["reasoning_parser"], where)

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        """Hub id with revision, or digests of a folder's files; and the options that matter.

        A folder's name and place do not enter, nor does the version of vLLM (it is recorded).

        Raises:
            ResourceError: there is no such model, or the hub is out of reach.
        """
        where = f"judge {judge.name}"
        model = model_files.find_model(str(judge.model), judge.revision, where)
        details: dict[str, Any] = {"model": model.name, "versions": vllm_setup.versions()}
        remarks: list[str] = []
        if judge.identity:
            remarks.append(
                f"{where}: identity is not used by engine vllm, which knows its model by its files"
            )
        if model.revision is None:
            model_files.check_complete(model, where, weights=_reads_weights(judge))
            files = model_files.file_digests(model.location)
            text = f"sha256:{model_files.combined_digest(files)}"
            details["files"] = files
        else:
            text = f"{model.name}@{model.revision}"
            details["revision"] = model.revision
            if not model.pinned:
                remarks.append(
                    f"{where}: model {model.name} is not pinned; it is {model.revision} today, "
                    f"write `revision: {model.revision}` to keep it"
                )
        options = vllm_setup.relevant_options(judge)
        details["options"] = options
        if options:
            text += " " + json.dumps(options, sort_keys=True, ensure_ascii=False, default=str)
        return Identity(text, details, tuple(remarks))

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, Any]:
        """The engine options that can change an answer."""
        return vllm_setup.relevant_options(judge)

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        """Answers a batch. Prompts that are too long become errors of their own.

        Raises:
            RuntimeError: the engine died or ran out of memory.
        """
        replies: dict[int, Reply] = {}
        prompts: dict[int, Any] = {}
        chats: list[int] = []
        for i, request in enumerate(batch):
            if self._template is None or any(_has_parts(m) for m in request.messages):
                chats.append(i)
                continue
            try:
                prompts[i] = self._render(request.messages)
            except Exception as e:  # a template is a program of its own and may raise anything
                replies[i] = _refused(f"the model's chat template refuses the messages: {e}")
        tokens = dict(zip(prompts, self._encode(list(prompts.values())), strict=True))
        for i, ids in tokens.items():
            if len(ids) >= self._limit:
                replies[i] = _refused(
                    f"prompt has {len(ids)} tokens, the model takes {self._limit}: shorten the "
                    "prompt, or raise engine_options.max_model_len if the model can do more"
                )
        asked = [i for i in tokens if i not in replies]
        replies |= self._ask(asked, [{"prompt_token_ids": tokens[i]} for i in asked], batch, False)
        replies |= self._ask(chats, [batch[i].messages for i in chats], batch, True)
        return [replies[i] for i in range(len(batch))]

    def counters(self) -> dict[str, float]:
        """vLLM's running counters: prompt, cached and generated tokens, prefix-cache use."""
        found: dict[str, float] = {}
        for metric in self.llm.get_metrics():
            name = metric.name.removeprefix("vllm:")
            if name in _COUNTERS:
                found[name] = found.get(name, 0.0) + float(metric.value)
        return found

    def close(self) -> None:
        """Frees the model and the memory of its device."""
        import gc

        if self.llm is None:
            return
        _open.discard(id(self))
        _closed.append(self.llm)
        self.llm = None
        if _open and os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0":
            return  # ending one engine inside a process ends the groups that all of them share
        while _closed:
            _closed.pop().llm_engine.engine_core.shutdown()
        gc.collect()
        if vllm_setup.has_gpu():
            import torch

            torch.cuda.empty_cache()

    def _render(self, messages: list[Message]) -> str:
        text: str = self._tokenizer.apply_chat_template(
            messages,
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=True,
            **self._template_kwargs,
        )
        if self._budget is not None and not text.rstrip().endswith(self._marks.start):
            # The budget counts from the opening mark; a model that has not written it yet could
            # spend everything before it.
            text += f"{self._marks.start}\n"
        return text

    def tokens(self, conversations: Sequence[list[Message]]) -> list[list[int]]:
        """Prompts as the model gets them: through its chat template, as token ids."""
        return self._encode([self._render(messages) for messages in conversations])

    def _encode(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        # The template has written the special tokens already; a second start token would harm.
        encoded: list[list[int]] = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        return encoded

    def parameters(self, request: Request) -> Any:
        """vLLM's sampling parameters for a request."""
        sampling = self._judge.sampling
        settings: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": request_seed(request, sampling.seed),
        }
        if request.schema is not None:
            from vllm.sampling_params import StructuredOutputsParams

            settings["structured_outputs"] = StructuredOutputsParams(json=dict(request.schema))
        if self._budget is not None:
            settings["max_tokens"] += self._budget + CLOSING_TOKENS
            settings["thinking_token_budget"] = self._budget
            settings["skip_special_tokens"] = False  # some models mark reasoning with them
        return self._vllm.SamplingParams(**settings)

    def _ask(
        self, rows: Sequence[int], prompts: Sequence[Any], batch: Sequence[Request], chat: bool
    ) -> dict[int, Reply]:
        """Asks for some rows of a batch; one that vLLM refuses is told apart by halving."""
        if not rows:
            return {}
        parameters = [self.parameters(batch[i]) for i in rows]
        call: Callable[..., Any] = self.llm.generate
        settings: dict[str, Any] = {"use_tqdm": False}
        if chat:
            call = self.llm.chat
            settings["chat_template_kwargs"] = self._template_kwargs
        try:
            outputs = call(list(prompts), parameters, **settings)
        except BaseException as e:
            self._forget_requests()
            if not isinstance(e, _request_faults()):
                raise
            if len(rows) == 1:
                return {rows[0]: _refused(f"vLLM refuses the request: {e}")}
            half = len(rows) // 2
            first = self._ask(rows[:half], prompts[:half], batch, chat)
            return first | self._ask(rows[half:], prompts[half:], batch, chat)
        if len(outputs) != len(rows):
            raise RuntimeError(f"vLLM gave {len(outputs)} outputs for {len(rows)} prompts")
        pairs = zip(rows, outputs, strict=True)
        return {i: self._reply(batch[i], output) for i, output in pairs}

    def _forget_requests(self) -> None:
        """Drops what a call left in the engine when it failed: the next one would wait for it."""
        engine = self.llm.llm_engine
        with contextlib.suppress(Exception):  # the engine may be gone
            engine.abort_request(list(engine.output_processor.request_states), internal=True)

    def _reply(self, request: Request, output: Any) -> Reply:
        generated = output.outputs[0]
        finish: str | None = generated.finish_reason
        text: str | None = generated.text
        error = None
        if finish in ("abort", "error"):
            text, error = None, f"vLLM ended the request early ({finish})"
        elif self._budget is not None or request.schema is None:
            opened = self._budget is not None
            text = split_reasoning(generated.text, self._marks, opened)
            if text is None:
                text, finish = "", REASONING_ONLY
        return Reply(
            raw=text,
            error=error,
            finish_reason=finish,
            model=self._model,
            prompt_tokens=len(output.prompt_token_ids or ()),
            cached_tokens=int(output.num_cached_tokens or 0),
            output_tokens=len(generated.token_ids),
        )


def _import_vllm(where: str) -> Any:
    try:
        with warnings.catch_warnings():
            # What vLLM's parts deprecate among themselves is no news to a user.
            warnings.simplefilter("ignore")
            import vllm
            from vllm import EngineArgs, SamplingParams  # noqa: F401  (loaded on first use)
    except Exception as e:  # a broken build fails with whatever its libraries raise
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise ResourceError(
            f"{where}: engine vllm: vLLM is installed but cannot be imported ({reason}); "
            "reinstall it, on a machine without a GPU with scripts/install_cpu_engine.sh"
        ) from e
    return vllm


def _answer_for_llvmlite() -> None:
    """Lets vLLM's CPU build start in a process that has compiled Numba kernels.

    It looks through the ``__dict__`` of everything that any module holds. llvmlite's library object
    takes that for the name of a C function and hands out an object that is no mapping, on which
    vLLM 0.32 fails. An empty mapping under that name satisfies both.
    """
    ffi = sys.modules.get("llvmlite.binding.ffi")
    table = getattr(getattr(ffi, "lib", None), "_fntab", None)
    if isinstance(table, dict):
        table.setdefault("__dict__", {})


def _load(vllm: Any, arguments: dict[str, Any], where: str) -> Any:
    _answer_for_llvmlite()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return vllm.LLM(**arguments)
    except OmnijudgeError:
        raise
    except Exception as e:  # many libraries take part in loading; each raises its own kind
        lines = [line.strip() for line in str(e).splitlines() if line.strip()]
        reason = " ".join(lines[:3])[:400] or type(e).__name__
        advice = "engine_options such as max_model_len or gpu_memory_utilization are handed to it"
        if "reasoning_parser" in arguments:
            advice += "; thinking needs the reasoning_parser there that fits the model"
        raise ResourceError(
            f"{where}: vLLM cannot load {arguments['model']}: {reason} ({advice})"
        ) from e


def _require_budget(vllm: Any, where: str) -> None:
    import inspect

    if "thinking_token_budget" not in inspect.signature(vllm.SamplingParams).parameters:
        raise ResourceError(
            f"{where}: thinking: this vLLM ({vllm.__version__}) cannot limit reasoning to a "
            "budget; install a newer one, or write `thinking: off`"
        )


def _marks(tokenizer: Any, parser: str, where: str) -> Marks:
    """How the model marks its reasoning, as vLLM's reasoning parser of that name knows it."""
    from vllm.reasoning import ReasoningParserManager

    advice = "set engine_options.reasoning_parser to vLLM's parser for it, or `thinking: off`"
    try:
        found = ReasoningParserManager.get_reasoning_parser(parser)(tokenizer)
    except Exception as e:
        raise ConfigError(f"{where}: thinking: the model has no reasoning marks: {advice}") from e
    start, end = found.reasoning_start_str, found.reasoning_end_str
    if not start or not end:
        raise ConfigError(f"{where}: thinking: parser {parser!r} names no marks: {advice}")
    return Marks(start, end)


def _template(tokenizer: Any, given: str | None, where: str) -> str | None:
    """The chat template; None if the tokenizer is not of the kind that has one to read."""
    if not hasattr(tokenizer, "get_chat_template"):
        return None
    if given is not None:
        return given
    try:
        template: str = tokenizer.get_chat_template()
    except ValueError as e:
        raise ResourceError(
            f"{where}: model: the tokenizer has no chat template; use an instruction-tuned model "
            "or set engine_options.chat_template"
        ) from e
    return template


def _template_kwargs(template: str | None, judge: JudgeConfig) -> dict[str, Any]:
    """Switches the template's reasoning as configured, where it has a switch."""
    thinks = not isinstance(judge.thinking, str)
    switches = [k for k in ("enable_thinking", "thinking") if k in (template or "")]
    # `thinking` is part of the longer name, and only one of them is the switch.
    return dict.fromkeys(switches[:1], thinks) | dict(judge.chat_template_kwargs)


def _reads_weights(judge: JudgeConfig) -> bool:
    return judge.engine_options.get("load_format") != "dummy"


def _has_parts(message: Message) -> bool:
    return not isinstance(message.get("content"), str)


def _refused(reason: str) -> Reply:
    return Reply(raw=None, error=reason, permanent=True)


def _request_faults() -> tuple[type[Exception], ...]:
    """What vLLM raises for a request it cannot take, the engine itself being well."""
    # A missing decoder for pictures or sound (ImportError) shows when the first of them comes.
    faults: tuple[type[Exception], ...] = (ValueError, TypeError, OSError, ImportError)
    try:
        from vllm.exceptions import VLLMClientError, VLLMValidationError
    except ImportError:  # older versions raise ValueError
        return faults
    return (*faults, VLLMClientError, VLLMValidationError)
