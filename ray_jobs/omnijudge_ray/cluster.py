"""The cluster: connecting to it, what an actor needs, and whether it is there."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnijudge.config import ExecutionConfig, JudgeConfig
from omnijudge.errors import ResourceError

log = logging.getLogger("omnijudge.ray")

# Settings of engines that actors on other nodes have to share with the driver. No keys: those are
# in the environment of the nodes, or nowhere.
_SHARED = ("VLLM_", "OMNIJUDGE_", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "OMP_NUM_THREADS")
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_WITHOUT_GPU = ("openai", "lexical", "replay")
_GROW_SECONDS = 20.0

_users = 0  # executors on a connection that we made: the judges of a panel share one


@dataclass(frozen=True, slots=True)
class Need:
    """What one actor needs of one node."""

    cpus: float
    gpus: float

    def __str__(self) -> str:
        cpus = f"{self.cpus:g} CPU{'s' if self.cpus != 1 else ''}"
        return f"{cpus} and {self.gpus:g} GPU{'s' if self.gpus != 1 else ''}" if self.gpus else cpus


def connect(execution: ExecutionConfig) -> tuple[Any, bool]:
    """Connects to the configured cluster, to ``RAY_ADDRESS``, or starts one on this machine.

    Returns:
        The ray module, and whether ``disconnect`` has to be called in the end: the connection is
        ours and not that of a program that uses Ray itself.

    Raises:
        ResourceError: no connection.
    """
    import ray

    global _users
    if ray.is_initialized():
        ours = _users > 0
        _users += ours
        return ray, ours
    address = execution.address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        options["include_dashboard"] = False
        _own_token()
    else:
        shared = {
            k: v
            for k, v in os.environ.items()
            if k.startswith(_SHARED) and not any(s in k for s in _SECRET)
        }
        options["runtime_env"] = {"env_vars": shared}
    try:
        _knock(address)
        ray.init(address=address, **options)
    except Exception as e:  # Ray raises all kinds here
        raise ResourceError(
            f"execution.address: no Ray cluster answers at {address} ({_line(e)}); start one, "
            "or leave the address out to use this machine alone"
        ) from e
    quiet()
    _users = 1
    return ray, True


def _knock(address: str) -> None:
    """Raises OSError where nobody listens; Ray itself would try for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()


def quiet() -> None:
    """Keeps Ray's messages about dead actors off the standard output, which belongs to results.

    The pool reports them in one line each.
    """
    from ray._private import worker

    if hasattr(worker, "_worker_logs_enabled"):
        worker._worker_logs_enabled = False


def disconnect(ray: Any) -> None:
    """Ends what ``connect`` began, when its last user is gone."""
    global _users
    _users -= 1
    if _users > 0:
        return
    ray.shutdown()
    if _OWN in os.environ:
        del os.environ[_OWN], os.environ["RAY_AUTH_TOKEN"]


_OWN = "OMNIJUDGE_RAY_OWN_TOKEN"


def _own_token() -> None:
    """Gives a cluster of our own a token that is never written to disk.

    Ray would write one to the home folder, which may be read-only.
    """
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    if not (Path.home() / ".ray" / "auth_token").is_file():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        os.environ[_OWN] = "1"


def need(ray: Any, execution: ExecutionConfig, judge: JudgeConfig) -> Need:
    """What one actor needs. GPUs "auto": as many as the engine spreads one model over, if the
    cluster has any and the engine runs a model."""
    if execution.gpus_per_actor != "auto":
        return Need(execution.cpus_per_actor, float(execution.gpus_per_actor))
    if judge.engine in _WITHOUT_GPU or not ray.cluster_resources().get("GPU"):
        return Need(execution.cpus_per_actor, 0.0)
    options = judge.engine_options
    spread = (options.get(f"{kind}_parallel_size") or 1 for kind in ("tensor", "pipeline"))
    gpus = 1
    for size in spread:
        gpus *= int(size)
    return Need(execution.cpus_per_actor, float(gpus))


def _places(ray: Any, one: Need) -> int:
    """How many actors the nodes hold when nothing else runs on them."""
    total = 0
    for node in ray.nodes():
        if not node.get("Alive", node.get("alive", False)):
            continue
        has = node["Resources"]
        places = has.get("CPU", 0.0) / one.cpus
        if one.gpus:
            places = min(places, has.get("GPU", 0.0) / one.gpus)
        total += int(places + 1e-9)
    return total


def actor_count(ray: Any, execution: ExecutionConfig, judge: JudgeConfig, one: Need) -> int:
    """How many actors to create: as configured, or as many as the cluster holds.

    Raises:
        ResourceError: no node could ever hold one; the message names what is missing.
    """
    until = time.monotonic() + (_GROW_SECONDS if execution.address else 0.0)
    while (places := _places(ray, one)) == 0:
        if time.monotonic() >= until:
            raise ResourceError(missing(ray, one))
        time.sleep(1.0)
    if execution.actors != "auto":
        if execution.actors > places:
            log.warning(
                "%d judge actors are wanted, the cluster holds %d of %s each; "
                "the others start when there is room",
                execution.actors,
                places,
                one,
            )
        return int(execution.actors)
    # One server is asked by one engine, which has its own concurrency.
    return 1 if judge.engine == "openai" else places


def missing(ray: Any, one: Need) -> str:
    """A sentence about resources that an actor does not find."""
    nodes = [n["Resources"] for n in ray.nodes() if n.get("Alive", n.get("alive", False))]
    total, free = ray.cluster_resources(), ray.available_resources()
    parts = []
    for kind, wanted in (("GPU", one.gpus), ("CPU", one.cpus)):
        largest = max((n.get(kind, 0.0) for n in nodes), default=0.0)
        if wanted > largest:
            if largest == 0:
                parts.append(f"the cluster has no {kind}")
            else:
                parts.append(f"the largest node has {largest:g} {kind}s")
        elif wanted > free.get(kind, 0.0):
            there = f"{free.get(kind, 0.0):g} of {total.get(kind, 0.0):g} {kind}s"
            parts.append(f"{there} of the cluster are free")
    found = " and ".join(parts) or "no single node has all of it free"
    return (
        f"execution: an actor needs {one}, but {found}; "
        "add nodes, or lower cpus_per_actor or gpus_per_actor"
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
