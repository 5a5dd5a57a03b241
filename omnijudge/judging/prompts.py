"""Prompt packs: a folder of Jinja templates and answer schemas, rendered in a sandbox."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.errors import ConfigError

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark, Prompt
    from omnijudge.judging.types import Message

PACK_FILE = "pack.yaml"


@dataclass(frozen=True)
class StagePrompt:
    """Templates and answer schema of one stage."""

    templates: Mapping[str, Any]
    schema: Mapping[str, Any]
    rationale_fields: tuple[str, ...]
    variables: tuple[str, ...]


class PromptPack:
    """A pack as loaded.

    A template has two blocks: ``system`` (fixed text and rubric) and ``user`` (the unit's fixed
    fields first, the system's text last, so that questions about one unit share their prefix).

    Attributes:
        name: name of the pack.
        version: its version.
        languages: the first one is what other languages fall back to.
        files: file name -> bytes, for the copy a run keeps.
        digest: hash of all files.
    """

    def __init__(self, folder: Path) -> None:
        """Loads a pack.

        Raises:
            ConfigError: a file is missing or wrong; the message names it.
        """
        from omnijudge.config import read_yaml

        if not (folder / PACK_FILE).is_file():
            raise ConfigError(f"{folder}: no {PACK_FILE} there; judge.prompts names a pack folder")
        self.folder = folder
        values = read_yaml(folder / PACK_FILE)
        self.files: dict[str, bytes] = {PACK_FILE: (folder / PACK_FILE).read_bytes()}
        try:
            self.name = str(values["name"])
            self.version = str(values["version"])
            self.languages = tuple(str(x) for x in values["languages"])
            stages = dict(values["stages"])
        except (KeyError, TypeError, ValueError) as e:
            raise ConfigError(
                f"{folder / PACK_FILE}: needs name, version, languages and stages ({e})"
            ) from e
        if not self.languages:
            raise ConfigError(f"{folder / PACK_FILE}: languages: name at least one")
        self._environment = _environment()
        self.stages = {name: self._stage(name, spec) for name, spec in stages.items()}
        whole = hashlib.blake2b(digest_size=16)
        for name in sorted(self.files):
            whole.update(name.encode() + b"\0" + self.files[name] + b"\0")
        self.digest = whole.hexdigest()

    def _stage(self, name: str, spec: Any) -> StagePrompt:
        import jinja2

        place = f"{self.folder / PACK_FILE}: stages.{name}"
        if not isinstance(spec, dict) or not isinstance(spec.get("templates"), dict):
            raise ConfigError(f"{place}: needs templates, one file per language")
        templates = {}
        for language in self.languages:
            if language not in spec["templates"]:
                raise ConfigError(f"{place}.templates: no file for language {language!r}")
            file = str(spec["templates"][language])
            try:
                source = (self.folder / file).read_bytes()
                template = self._environment.from_string(source.decode("utf-8"))
                # A plain dict: every question copies it, and a chain of dicts is slow to copy.
                template.globals = dict(template.globals)
            except OSError as e:
                raise ConfigError(f"{self.folder / file}: cannot be read ({e.strerror})") from e
            except UnicodeDecodeError as e:
                raise ConfigError(f"{self.folder / file}: not UTF-8") from e
            except jinja2.TemplateSyntaxError as e:
                raise ConfigError(f"{self.folder / file}: line {e.lineno}: {e.message}") from e
            lacking = {"system", "user"} - template.blocks.keys()
            if lacking:
                raise ConfigError(f"{self.folder / file}: block {min(lacking)!r} is missing")
            self.files[file] = source
            templates[language] = template
        schema = spec.get("schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise ConfigError(f"{place}.schema: needs a JSON schema of type object")
        return StagePrompt(
            templates,
            schema,
            tuple(spec.get("rationale_fields", ())),
            tuple(spec.get("variables", ())),
        )

    def language(self, wanted: str | None) -> str:
        """The language a prompt is rendered in."""
        return wanted if wanted is not None and wanted in self.languages else self.languages[0]

    def prompt_id(self, stage: str, language: str) -> str:
        """Names pack, version, stage and language."""
        return f"{self.name}/{self.version}/{stage}/{language}"

    def schema(self, stage: str, rationale: bool) -> dict[str, Any]:
        """Answer schema of a stage; without the rationale fields when none is wanted."""
        spec = self.stages[stage]
        schema = copy.deepcopy(dict(spec.schema))
        if not rationale:
            for name in spec.rationale_fields:
                schema.get("properties", {}).pop(name, None)
                if name in schema.get("required", ()):
                    schema["required"].remove(name)
        return schema

    def render(self, prompt: Prompt, rationale: bool, language: str | None = None) -> list[Message]:
        """Chat messages of a question: a system and a user message.

        Raises:
            ConfigError: the template uses something that is not there.
        """
        import jinja2

        chosen = self.language(language or prompt.language)
        template = self.stages[prompt.stage].templates[chosen]
        variables = {**prompt.variables, "rationale": rationale}
        media = variables.pop("media", None)
        try:
            context = template.new_context(variables)
            system = "".join(template.blocks["system"](context)).strip()
            user = "".join(template.blocks["user"](context)).strip()
        except jinja2.TemplateError as e:
            raise ConfigError(
                f"{self.folder}: template of stage {prompt.stage!r} ({chosen}): {e}"
            ) from e
        content: Any = [{"type": "text", "text": user}, *media] if media else user
        return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )


def load_pack(name: str, benchmark: Benchmark) -> PromptPack:
    """The pack a judge is configured with: ``default``, or a folder.

    Raises:
        ConfigError: no such pack, or it lacks a stage of the benchmark.
    """
    pack = PromptPack(benchmark.pack if name == "default" else Path(name))
    lacking = [s for s in benchmark.stages if s not in pack.stages]
    if lacking:
        raise ConfigError(
            f"{pack.folder / PACK_FILE}: stages {', '.join(lacking)} of {benchmark.name} "
            "are missing"
        )
    return pack
