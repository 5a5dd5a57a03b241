"""Submits a run as a job to a Ray cluster and follows it to its end.

    python -m omnijudge_ray.submit configs/overnight.yaml --address http://head:8265
    python -m omnijudge_ray.submit overnight.yaml --working-dir configs -- -o execution.actors=8

The job is ``omnijudge run CONFIG --backend ray``, driven from the cluster's head. Paths are meant
on the cluster: omnijudge is installed there, and data, store and output lie where its nodes see
them (--working-dir uploads a folder with the configuration and prompts). Words behind ``--`` go to
``omnijudge run``. The exit code is the run's own. Interrupted (Ctrl-C), the job goes on; --follow
ID watches it again, and --stop ID ends it in good order: what was judged is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

ADDRESS = "http://127.0.0.1:8265"
INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python -m omnijudge_ray.submit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("config", nargs="?", metavar="CONFIG", help="configuration, on the cluster")
    top.add_argument(
        "--address",
        default=os.environ.get("RAY_API_SERVER_ADDRESS") or ADDRESS,
        help=f"of the cluster's dashboard (default: RAY_API_SERVER_ADDRESS, or {ADDRESS})",
    )
    top.add_argument("--working-dir", metavar="DIR", help="folder to upload and to run in")
    top.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting for the job, such as HF_HOME=/shared/hub; never a key: Ray keeps and shows "
        "it. Keys belong in the environment of the cluster's nodes",
    )
    top.add_argument("--no-wait", action="store_true", help="print the job's id and leave")
    top.add_argument("--follow", metavar="ID", help="follow a job that was submitted before")
    top.add_argument("--stop", metavar="ID", help="end a job in good order")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code of the run."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    rest: list[str] = []
    if "--" in words:
        cut = words.index("--")
        words, rest = words[:cut], words[cut + 1 :]
    args = parser().parse_args(words)
    if not (args.config or args.follow or args.stop):
        parser().error("name a configuration, or a job with --follow or --stop")
    try:
        client = _client(args.address)
    except ConnectionError as e:
        print(
            f"omnijudge: no Ray dashboard answers at {args.address} ({e}); start the cluster, or "
            "name its address with --address",
            file=sys.stderr,
        )
        return 1
    if args.stop:
        client.stop_job(args.stop)
        print(f"job {args.stop} is asked to end; what was judged is kept")
        return 0
    job = args.follow
    if job is None:
        env = dict(_setting(text) for text in args.env)
        job = submit(client, args.config, rest, args.working_dir, env)
        print(f"job {job}", flush=True)
    if args.no_wait:
        return 0
    try:
        return follow(client, job)
    except KeyboardInterrupt:
        print(f"\njob {job} goes on; --follow {job} watches it, --stop {job} ends it")
        return INTERRUPTED


def _client(address: str) -> Any:
    from ray.job_submission import JobSubmissionClient

    return JobSubmissionClient(address)


_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise SystemExit(f"--env {text}: write NAME=VALUE")
    if any(word in name.upper() for word in _SECRET):
        raise SystemExit(
            f"--env {name}: looks like a key, and Ray would keep and show it; set it in the "
            "environment of the cluster's nodes instead"
        )
    return name, value


def command(config: str, words: Sequence[str]) -> str:
    """The job's command."""
    return shlex.join(["omnijudge", "run", config, "--backend", "ray", *words])


def submit(
    client: Any,
    config: str,
    words: Sequence[str] = (),
    working_dir: str | None = None,
    env: dict[str, str] | None = None,
) -> str:
    """Submits a run; returns the job's id.

    Args:
        client: Ray's job submission client.
        config: path of the configuration on the cluster.
        words: further words for ``omnijudge run``.
        working_dir: folder to upload and to run in.
        env: settings for the job.
    """
    runtime_env: dict[str, Any] = {}
    if working_dir is not None:
        runtime_env["working_dir"] = working_dir
    if env:
        runtime_env["env_vars"] = env
    job: str = client.submit_job(entrypoint=command(config, words), runtime_env=runtime_env)
    return job


def follow(client: Any, job: str) -> int:
    """Prints a job's output until it ends; returns its exit code."""

    async def tail() -> None:
        async for lines in client.tail_job_logs(job):
            print(lines, end="", flush=True)

    asyncio.run(tail())
    info = client.get_job_info(job)
    code = getattr(info, "driver_exit_code", None)
    if code is not None:
        return int(code)
    status = str(getattr(info.status, "value", info.status))
    if status == "SUCCEEDED":
        return 0
    print(f"omnijudge: job {job}: {status}: {info.message}", file=sys.stderr)
    return INTERRUPTED if status == "STOPPED" else 1


if __name__ == "__main__":
    sys.exit(main())
