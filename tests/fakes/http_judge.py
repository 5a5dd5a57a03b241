"""A judge's HTTP server on this machine, with faults to order."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Fault:
    """What the server does instead of answering one request.

    Attributes:
        status: HTTP status; 200 with a ``body`` of its own for broken replies; 0 hangs up.
        body: the reply's body, as JSON unless it is bytes.
        headers: more headers, such as ``Retry-After``.
        delay: seconds before it happens.
    """

    status: int = 500
    body: Any = field(default_factory=lambda: {"error": {"message": "out of order"}})
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


class HttpJudge:
    """Serves chat completions; use it as a context manager.

    Attributes:
        answer: gives the content of the reply for a request body.
        faults: happen first, one a request.
        always: happens at every request, if set.
        latency: seconds each answer takes.
        rate_limit: requests allowed within ``rate_window`` seconds; more get a 429 that names
            the time to wait.
        key: the key asked for, if any.
        forbidden: request fields the server refuses with a 400 that names them.
        bodies: every request body, in order of arrival.
        most_in_flight: the most requests that were open at one time.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], Any] = lambda body: '{"score": 1}'):
        self.answer = answer
        self.message: dict[str, Any] = {}
        self.finish_reason = "stop"
        self.usage: dict[str, Any] | None = {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 8},
        }
        self.faults: deque[Fault] = deque()
        self.always: Fault | None = None
        self.latency = 0.0
        self.rate_limit: int | None = None
        self.rate_window = 0.5
        self.key: str | None = None
        self.forbidden: set[str] = set()
        self.bodies: list[dict[str, Any]] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._recent: deque[float] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> HttpJudge:
        judge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are sent apart, and the body must not wait for the client's word.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                judge._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, http: BaseHTTPRequestHandler) -> None:
        body = json.loads(http.rfile.read(int(http.headers.get("Content-Length", 0))))
        with self._lock:
            self.bodies.append(body)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            fault = self._fault(http, body)
        try:
            time.sleep(fault.delay if fault else self.latency)
        finally:
            with self._lock:
                self._in_flight -= 1
        if fault is None:
            self._send(http, 200, self._completion(body), {})
        elif fault.status == 0:
            http.close_connection = True
            http.connection.close()
        else:
            self._send(http, fault.status, fault.body, fault.headers)

    def _fault(self, http: BaseHTTPRequestHandler, body: dict[str, Any]) -> Fault | None:
        if self.key is not None and http.headers.get("Authorization") != f"Bearer {self.key}":
            given = http.headers.get("Authorization")
            return Fault(401, {"error": {"message": f"there is no such key: {given}"}})
        if self.faults:
            return self.faults.popleft()
        if self.always:
            return self.always
        refused = sorted(self.forbidden & body.keys())
        if refused:
            return Fault(400, {"error": {"message": f"the field {refused[0]} is not supported"}})
        if self.rate_limit is not None:
            now = time.monotonic()
            while self._recent and now - self._recent[0] > self.rate_window:
                self._recent.popleft()
            if len(self._recent) >= self.rate_limit:
                wait = self.rate_window - (now - self._recent[0])
                headers = {"Retry-After": f"{max(wait, 0.0) + 0.01:.3f}"}
                return Fault(429, {"error": {"message": "too many requests"}}, headers)
            self._recent.append(now)
        return None

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.answer(body), **self.message}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": f"{body['model']}-served",
            "choices": [choice],
            "usage": self.usage,
        }

    def _send(
        self, http: BaseHTTPRequestHandler, status: int, body: Any, headers: dict[str, str]
    ) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            http.send_response(status)
            http.send_header("Content-Type", "application/json")
            http.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                http.send_header(name, value)
            http.end_headers()
            http.wfile.write(content)
        except OSError:  # the client gave up waiting
            http.close_connection = True
