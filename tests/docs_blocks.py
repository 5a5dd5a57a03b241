"""Code blocks of the project's documents: commands, YAML, Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = (
    "omnijudge",
    "bash",
    "pip",
    "python",
    "pytest",
    "ray",
    "sbatch",
    "curl",
    "export",
    "srun",
)
SHELLS = ("bash", "sh", "shell", "console")


def documents() -> list[Path]:
    """README, CONTRIBUTING, CHANGELOG and every page of the docs."""
    named = [ROOT / n for n in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*named, *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        file: name of its document.
        line: number of its first line.
        language: as fenced; ``indented`` for an indented one.
        text: without fence or indentation.
    """

    file: str
    line: int
    language: str
    text: str

    @property
    def is_shell(self) -> bool:
        """Whether it holds commands."""
        if self.language != "indented":
            return self.language in SHELLS
        first = next((w for x in self.text.splitlines() if (w := _plain(x))), "")
        return first.split(" ")[0].split("/")[-1] in PROGRAMS

    def commands(self) -> Iterator[tuple[int, str]]:
        """(line number, command) without comments; continued lines are one command."""
        begun, start = "", 0
        for number, raw in enumerate(self.text.splitlines(), self.line):
            line = _plain(raw.removeprefix("$ "))
            if not begun:
                start = number
            begun = f"{begun} {line}".strip()
            if begun.endswith("\\"):
                begun = begun[:-1].strip()
                continue
            if begun:
                yield start, begun
            begun = ""


def _plain(line: str) -> str:
    """A line without its comment."""
    return re.sub(r"(^|\s+)#.*$", "", line).strip()


def blocks(path: Path) -> list[Block]:
    """Every code block of a Markdown file."""
    found: list[Block] = []
    name = path.relative_to(ROOT).as_posix()
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        fence = re.match(r"^(```+|~~~+)\s*([\w+-]*)", lines[at])
        if fence:
            end = at + 1
            while end < len(lines) and not lines[end].startswith(fence[1]):
                end += 1
            text = "\n".join(lines[at + 1 : end])
            found.append(Block(name, at + 2, fence[2] or "plain", text))
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            text = "\n".join(x[4:] for x in lines[at:end])
            found.append(Block(name, at + 1, "indented", text))
            at = end
        else:
            at += 1
    return found


def inline_commands(path: Path) -> list[str]:
    """Commands named in running text, as `omnijudge ...`."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"`omnijudge ([^`]+)`", text)
