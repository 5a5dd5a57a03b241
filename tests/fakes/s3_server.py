"""An S3-compatible server on this machine, in a process of its own.

with s3_server() as url:        # store address, without the folder
    ...
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SERVE = """
import logging, sys, warnings
warnings.simplefilter("ignore")
logging.getLogger("werkzeug").setLevel(logging.ERROR)
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""

KEYS = {
    "AWS_ACCESS_KEY_ID": "access-of-the-test",
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Environment of whoever uses the server; it takes any keys."""


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        port: where it listens.
    """

    port: int

    def store(self, folder: str) -> str:
        """Address of a store in a bucket that is made with it."""
        where = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://bucket/{folder}?{where}&allow_bucket_creation=true"


@contextmanager
def s3_server() -> Iterator[Server]:
    """Starts the server, and ends it."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Server(int(process.stdout.readline()))
    finally:
        process.communicate("", timeout=30)
