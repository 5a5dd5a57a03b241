"""The run configuration: one YAML file, unknown keys refused with the nearest known key."""

from __future__ import annotations

import copy
import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from omnijudge.errors import ConfigError, Problem


class Model(BaseModel):
    """Base of every part of the configuration: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class DataConfig(Model):
    """Where the annotations are. Exactly one of root, manifest, annotations."""

    root: str | None = None
    manifest: str | None = None
    annotations: str | None = None
    on_bad_sample: Literal["refuse", "skip"] = "refuse"
    offline: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> DataConfig:
        given = [k for k in ("root", "manifest", "annotations") if getattr(self, k) is not None]
        if len(given) != 1:
            said = " and ".join(given) if given else "none of them"
            raise ValueError(f"name one of root, manifest, annotations; found {said}")
        return self

    @property
    def folder(self) -> str:
        """Folder that paths inside the annotations are meant from."""
        source = self.root or self.manifest or self.annotations or ""
        return source if self.root or os.path.isdir(source) else os.path.dirname(source)


class SystemConfig(Model):
    """One system under test: where its outputs are and how to read them."""

    path: str | None = None
    format: str = "auto"
    time_unit: Literal["s", "ms", None] = None
    time_offset: float = 0.0
    speaker: str | None = None
    not_evaluated: tuple[str, ...] = ()
    tags: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @field_validator("time_offset")
    @classmethod
    def _finite(cls, value: float) -> float:
        if not (-1e9 < value < 1e9):
            raise ValueError("must be a finite number of seconds")
        return value


class SamplingConfig(Model):
    """How the judge generates."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] = 256
    seed: int = 0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0


class ThinkingConfig(Model):
    """A budget of reasoning tokens before the answer."""

    budget: Annotated[int, Field(ge=1)]


class PriceConfig(Model):
    """Price per million tokens, in one currency of the user's choice."""

    input: Annotated[float, Field(ge=0)] | None = None
    cached_input: Annotated[float, Field(ge=0)] | None = None
    output: Annotated[float, Field(ge=0)] | None = None


class JudgeConfig(Model):
    """One judge."""

    name: str = "main"
    engine: str = "lexical"
    model: str | None = None
    revision: str | None = None
    identity: str | None = None
    prompts: str = "default"
    language: str | None = None
    rationale: Literal["none", "short"] = "short"
    thinking: Literal["off"] | ThinkingConfig = "off"
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    sampling: SamplingConfig = SamplingConfig()
    attempts: Annotated[int, Field(ge=1, le=10)] | None = None
    repeats: Annotated[int, Field(ge=1)] = 1
    parsing: Literal["strict", "published", None] = None
    engine_options: dict[str, Any] = Field(default_factory=dict)
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: Annotated[int, Field(ge=1)] = 32
    timeout: Annotated[float, Field(gt=0)] = 120.0
    transport_retries: Annotated[int, Field(ge=0)] = 5
    price: PriceConfig = PriceConfig()
    answers: str | None = None
    exam: Annotated[float, Field(ge=0, le=1)] | None = None

    @field_validator("thinking", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        # YAML 1.1 reads a bare `off` as false.
        return "off" if value is False or value is None else value

    @model_validator(mode="after")
    def _complete(self) -> JudgeConfig:
        if self.engine in ("vllm", "openai") and not self.model:
            raise ValueError(f"engine {self.engine} needs `model`")
        if self.engine == "replay" and not self.answers:
            raise ValueError("engine replay needs `answers`, the file with the stored answers")
        if self.engine == "replay" and self.exam is not None:
            raise ValueError("engine replay asks nobody, so it can sit no exam; take `exam` out")
        return self


class PanelConfig(Model):
    """Several judges over the same questions."""

    panel: Annotated[tuple[JudgeConfig, ...], Field(min_length=1)]
    combine: Literal["mean", "median", "majority"] = "mean"

    @model_validator(mode="after")
    def _distinct(self) -> PanelConfig:
        names = [j.name for j in self.panel]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"judges need distinct names; {', '.join(twice)} stands twice")
        return self


def _judge_or_panel(value: Any) -> str:
    panel = "panel" in value if isinstance(value, dict) else isinstance(value, PanelConfig)
    return "several judges" if panel else "one judge"


class ExecutionConfig(Model):
    """Where and how engines run."""

    backend: Literal["local", "ray"] = "local"
    actors: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    gpus_per_actor: Literal["auto"] | Annotated[float, Field(ge=0)] = "auto"
    cpus_per_actor: Annotated[float, Field(gt=0)] = 1.0
    batch_size: Annotated[int, Field(ge=1)] = 256
    in_flight: Annotated[int, Field(ge=1)] = 2
    memory: str = "8GiB"
    address: str | None = None

    @field_validator("memory")
    @classmethod
    def _size(cls, value: str) -> str:
        parse_size(value)
        return value


class StatisticsConfig(Model):
    """Intervals."""

    replicates: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    interval: Literal["percentile", "bca", "jackknife"] = "percentile"
    cluster: str = "video_id"
    seed: Annotated[int, Field(ge=0)] = 0
    baseline: str | None = None


class LimitsConfig(Model):
    """What a run may lose, spend or take."""

    max_invalid: Annotated[float, Field(ge=0, le=1)] = 0.01
    max_unscored: Annotated[int, Field(ge=0)] = 0
    max_cost: Annotated[float, Field(gt=0)] | None = None
    deadline: Annotated[str, Field(pattern=r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?$")] | None = None


CONTROL_PREFIX = "control:"
"""Begins the names of control rows, and of no system."""


class RunConfig(Model):
    """A whole run. Relative paths are meant from the configuration's folder."""

    benchmark: str
    data: DataConfig
    systems: dict[str, SystemConfig] = Field(default_factory=dict)
    controls: tuple[Literal["oracle", "silent", "shuffled"], ...] = ()
    judge: Annotated[
        Annotated[JudgeConfig, Tag("one judge")] | Annotated[PanelConfig, Tag("several judges")],
        Discriminator(_judge_or_panel),
    ] = JudgeConfig()
    execution: ExecutionConfig = ExecutionConfig()
    scoring: dict[str, Any] = Field(default_factory=lambda: {"profile": "robust"})
    statistics: StatisticsConfig = StatisticsConfig()
    limits: LimitsConfig = LimitsConfig()
    store: str | None = None
    output: str

    @field_validator("systems", mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("name each system: `name: path` (or a folder pattern `outputs/*`)")
        return {str(k): {"path": v} if isinstance(v, str) else v for k, v in value.items()}

    @field_validator("systems")
    @classmethod
    def _names(cls, value: dict[str, SystemConfig]) -> dict[str, SystemConfig]:
        for name in value:
            if not name.strip() or "/" in name:
                raise ValueError(f"system name {name!r}: a name needs a letter and no '/'")
            if name.startswith(CONTROL_PREFIX):
                raise ValueError(f"system name {name!r}: {CONTROL_PREFIX} is kept for controls")
        return value

    @field_validator("controls")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value))

    @property
    def judges(self) -> tuple[JudgeConfig, ...]:
        """The judges of the run: one, or those of the panel."""
        return self.judge.panel if isinstance(self.judge, PanelConfig) else (self.judge,)


_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_UNITS |= {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def parse_size(text: str) -> int:
    """Bytes meant by a text such as ``8GiB``.

    Raises:
        ValueError: not a size.
    """
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not m or m[2].lower() not in _UNITS:
        raise ValueError(f"{text!r} is no size; write for example 8GiB")
    return int(float(m[1]) * _UNITS[m[2].lower()])


class _Loader(yaml.SafeLoader):
    """Names a key that stands twice in one mapping (YAML keeps the last one in silence)."""

    repeated: list[tuple[int, Any]]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                self.repeated.append((key_node.start_mark.line + 1, key))
            seen.add(key)
        return dict(super().construct_mapping(node, deep))


# YAML 1.1 reads `on`, `off`, `yes`, `no` as booleans and `07:45` as a sexagesimal number.
_Loader.yaml_implicit_resolvers = {
    k: [(tag, rx) for tag, rx in v if not (tag == "tag:yaml.org,2002:int" and k in "0123456789")]
    for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _first in "-+0123456789":
    _Loader.add_implicit_resolver(
        "tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9_]*)$"), [_first]
    )


def read_yaml(path: Path, problems: list[Problem] | None = None) -> dict[str, Any]:
    """Reads a YAML mapping.

    Args:
        path: the file.
        problems: if given, a key that stands twice is added to it instead of being raised.

    Raises:
        ConfigError: unreadable, not YAML, not a mapping, or a key that stands twice.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as e:
        raise ConfigError(f"{path}: cannot be read ({e.strerror}); check the path") from e
    except UnicodeDecodeError as e:
        raise ConfigError(f"{path}: byte {e.start} is not UTF-8; save the file as UTF-8") from e
    try:
        value, repeated = _load(text)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(
            f"{path}: {place}not valid YAML ({getattr(e, 'problem', None) or e})"
        ) from e
    for line, key in repeated:
        message = f"the key {key!r} stands twice; rename or remove one of them"
        if problems is None:
            raise ConfigError(f"{path}: line {line}: {message}")
        problems.append(Problem("repeated_key", "error", str(path), f"line {line}", message))
    if not isinstance(value, dict):
        kind = "nothing" if value is None else type(value).__name__
        raise ConfigError(f"{path}: the file must hold keys and values; found {kind}")
    return value


def _load(text: str) -> tuple[Any, list[tuple[int, Any]]]:
    loader = _Loader(text)
    loader.repeated = []
    try:
        return loader.get_single_data(), loader.repeated
    finally:
        loader.dispose()


def set_key(values: dict[str, Any], path: str, text: str) -> None:
    """Sets ``a.b.c`` in nested mappings to a YAML value (``-o a.b.c=value``)."""
    keys = path.split(".")
    node = values
    for key in keys[:-1]:
        child = node.get(key)
        if child is None:
            child = node[key] = {}
        if not isinstance(child, dict):
            raise ConfigError(f"-o {path}: {key} holds a value, not keys")
        node = child
    try:
        node[keys[-1]], _ = _load(text)
    except yaml.YAMLError as e:
        raise ConfigError(f"-o {path}={text}: the value is not valid YAML") from e


def apply_overrides(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The values with ``key.path=value`` overrides set.

    Raises:
        ConfigError: an override of another form, or without a YAML value.
    """
    values = copy.deepcopy(values)
    for item in overrides:
        key, sep, text = item.partition("=")
        if not sep or not key.strip():
            raise ConfigError(f"-o {item}: write key.path=value")
        set_key(values, key.strip(), text)
    return values


def load_config(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    problems: list[Problem] | None = None,
) -> RunConfig:
    """Loads a configuration file and applies ``key.path=value`` overrides.

    Relative paths, in the file and in overrides, are meant from the file's folder, so that a run
    means the same from anywhere.

    Args:
        path: the file.
        overrides: as behind ``-o``.
        problems: if given, keys that are unknown or stand twice are added to it and passed over,
            so that ``validate`` can go on to the data.

    Raises:
        ConfigError: anything (else) wrong with it; all problems in one message.
    """
    file = Path(path)
    values = apply_overrides(read_yaml(file, problems), overrides)
    return build_config(values, file.parent.resolve(), str(path), problems)


def build_config(
    values: dict[str, Any], base: Path, source: str, problems: list[Problem] | None = None
) -> RunConfig:
    """Validates configuration values; ``base`` is the folder relative paths are meant from."""
    values = copy.deepcopy(values)
    values["systems"] = _expand_systems(values.get("systems"), base, source)
    removed: list[str] = []
    while True:
        try:
            config = RunConfig.model_validate(values)
        except ValidationError as e:
            errors = e.errors(include_url=False)
            unknown = [err for err in errors if err["type"] == "extra_forbidden"]
            if problems is not None and unknown:
                for err in unknown:
                    removed.append(explain(err, source))
                    message = removed[-1].removeprefix(f"{source}: ")
                    place, _, message = message.partition(": ")
                    problems.append(Problem("unknown_key", "error", source, place, message))
                    _remove(values, [x for x in err["loc"] if x not in _TAGS])
                continue
            # A missing key is often one that was misspelt, so those are named again.
            lines = [*removed, *(explain(err, source) for err in errors)]
            raise ConfigError("\n".join(dict.fromkeys(lines))) from None
        return _resolve_paths(config, base)


def _remove(values: Any, location: Sequence[Any]) -> None:
    for step in location[:-1]:
        values = values[step]
    del values[location[-1]]


def _expand_systems(systems: Any, base: Path, source: str) -> Any:
    """Folder patterns (``outputs/*``) become one system per folder or file, by its name."""
    if systems is None:
        return {}
    if isinstance(systems, str):
        systems = [systems]
    if isinstance(systems, list):
        if not all(isinstance(s, str) for s in systems):
            raise ConfigError(f"{source}: systems: a list may hold folder patterns only")
        systems = {s: s for s in systems}
    if not isinstance(systems, dict):
        return systems
    found: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, value in systems.items():
        name = str(name)
        pattern = value if isinstance(value, str) else (value or {}).get("path")
        if not (isinstance(pattern, str) and any(c in name for c in "*?[")):
            pairs = [(name, value)]
        else:
            folder, _, glob = pattern.rpartition("/")
            hits = sorted(Path(base, folder).glob(glob))
            hits = [h for h in hits if not h.name.startswith(".")]
            if not hits:
                raise ConfigError(f"{source}: systems: {pattern} matches nothing below {base}")
            rest = {} if isinstance(value, str) else dict(value)
            pairs = [(h.name if h.is_dir() else h.stem, {**rest, "path": str(h)}) for h in hits]
        for key, settings in pairs:
            if key in found:
                raise ConfigError(
                    f"{source}: systems: two systems are named {key!r} "
                    f"({origin[key]} and {name}); give one of them another name"
                )
            found[key], origin[key] = settings, name
    return found


def _resolve_paths(config: RunConfig, base: Path) -> RunConfig:
    def absolute(value: str | None) -> str | None:
        if value is None or "://" in value:
            return value
        return str(Path(os.path.normpath(base / Path(value).expanduser())))

    def judge(j: JudgeConfig) -> JudgeConfig:
        update: dict[str, Any] = {}
        if j.answers:
            update["answers"] = absolute(j.answers)
        if j.prompts != "default" and ("/" in j.prompts or (base / j.prompts).is_dir()):
            update["prompts"] = absolute(j.prompts)
        # A model is a folder if it looks like a path or is one; else a hub id.
        if j.model and (
            j.model.startswith((".", "/", "~")) or (base / j.model / "config.json").is_file()
        ):
            update["model"] = absolute(j.model)
        return j.model_copy(update=update)

    data = config.data.model_copy(
        update={
            k: absolute(getattr(config.data, k))
            for k in ("root", "manifest", "annotations", "offline")
        }
    )
    systems = {
        n: s.model_copy(update={"path": absolute(s.path)}) for n, s in config.systems.items()
    }
    judges: JudgeConfig | PanelConfig
    if isinstance(config.judge, PanelConfig):
        judges = config.judge.model_copy(
            update={"panel": tuple(judge(j) for j in config.judge.panel)}
        )
    else:
        judges = judge(config.judge)
    return config.model_copy(
        update={
            "data": data,
            "systems": systems,
            "judge": judges,
            "store": absolute(config.store),
            "output": absolute(config.output),
        }
    )


def _known_keys(location: Sequence[Any]) -> list[str]:
    """Keys known at the place where an unknown key was found."""
    model: Any = RunConfig
    for step in location:
        if model is None:
            return []
        fields = getattr(model, "model_fields", {})
        if step in _TAGS:
            model = _TAGS[step]
        elif step == "judge" and model is RunConfig:
            model = JudgeConfig
        elif step == "systems":
            model = _Systems
        elif model is _Systems:
            model = SystemConfig
        elif isinstance(step, int):
            continue
        elif step == "panel":
            model = JudgeConfig
        elif step in fields:
            annotation = fields[step].annotation
            model = annotation if hasattr(annotation, "model_fields") else None
    return list(getattr(model, "model_fields", {}))


_TAGS = {"one judge": JudgeConfig, "several judges": PanelConfig, "ThinkingConfig": ThinkingConfig}


class _Systems:
    """Stands for the free-named level of ``systems`` in a key path."""


def explain(err: Any, source: str, known: Sequence[str] | None = None) -> str:
    """One validation error as a sentence with its key, and the nearest known key.

    Args:
        err: entry of pydantic's ``errors()``.
        source: file or key the values stand in.
        known: keys known at that place, if they are not those of a run configuration.
    """
    loc = [x for x in err["loc"] if x not in _TAGS and x != "literal['off']"]
    where = ".".join(str(x) for x in loc) or "the file"
    if err["type"] == "extra_forbidden":
        keys = list(known) if known is not None else _known_keys(err["loc"][:-1])
        near = difflib.get_close_matches(str(loc[-1]), keys, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{source}: {where}: unknown key{hint}"
    if err["type"] == "missing":
        return f"{source}: {where}: is missing"
    message = err["msg"].removeprefix("Value error, ")
    if loc[-1:] == ["deadline"]:
        message = 'must be a time of day in quotes, such as "07:45"'
    given = err.get("input")
    shown = f" (found {given!r})" if isinstance(given, str | int | float | bool) else ""
    return f"{source}: {where}: {message[:1].lower()}{message[1:]}{shown}"
