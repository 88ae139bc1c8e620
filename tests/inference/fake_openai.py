"""A server that speaks the OpenAI routes over real HTTP, with answers and faults that the test writes down."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[str, int], str]
"""(prompt, how many samples of it went before) -> completion."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away while they are answered are part of the tests."""


class FakeOpenAI:
    """Serves /v1/chat/completions and /v1/completions on a free port of this machine.

    Args:
        script: What it completes.
        faults: Prompt -> what befalls its first requests, one after another: an HTTP status, or "drop" to cut the
            connection.
        ignore_n: Give one sample whatever is asked, as some servers do.
        count_tokens: Report usage: a token a letter.
        cut: Completions that end so are said to be cut off.
    """

    def __init__(
        self,
        script: Script,
        *,
        faults: dict[str, list[int | str]] | None = None,
        ignore_n: bool = False,
        count_tokens: bool = True,
        cut: str = "...",
    ) -> None:
        self.script, self.ignore_n, self.count_tokens, self.cut = script, ignore_n, count_tokens, cut
        self.faults = {prompt: list(some) for prompt, some in (faults or {}).items()}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.drawn: Counter[str] = Counter()
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FakeOpenAI:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def bodies(self, prompt: str) -> list[dict[str, Any]]:
        return [body for seen, body in self.requests if seen == prompt]

    def answer(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, Any]] | None:
        chat = path == "/v1/chat/completions"
        if not chat and path != "/v1/completions":
            return 404, {"error": {"message": f"no route {path}"}}
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        with self._lock:
            self.requests.append((prompt, body))
            self.headers.append(headers)
            if self.faults.get(prompt):
                fault = self.faults[prompt].pop(0)
                return None if fault == "drop" else (int(fault), {"error": {"message": f"fault {fault}"}})
            n = 1 if self.ignore_n else int(body.get("n") or 1)
            texts = [self.script(prompt, self.drawn[prompt] + i) for i in range(n)]
            self.drawn[prompt] += n
        choices = []
        for i, text in enumerate(texts):
            content = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
            reason = "length" if text.endswith(self.cut) else "stop"
            choices.append({"index": i, "finish_reason": reason, **content})
        usage = {"prompt_tokens": len(prompt), "completion_tokens": sum(map(len, texts))}
        usage["total_tokens"] = sum(usage.values())
        kind = "chat.completion" if chat else "text_completion"
        whole = {"id": "x", "object": kind, "created": 0, "model": body["model"], "choices": choices}
        return 200, {**whole, "usage": usage} if self.count_tokens else whole

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                with fake._lock:
                    fake._now += 1
                    fake.most_at_once = max(fake.most_at_once, fake._now)
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                given = fake.answer(self.path, body, {k.lower(): v for k, v in self.headers.items()})
                with fake._lock:
                    fake._now -= 1
                if given is None:
                    self.close_connection = True
                    self.connection.close()
                    return
                status, answer = given
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                if status >= 400:
                    self.send_header("retry-after-ms", "1")  # so that tests don't wait
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
