"""A server that speaks the OpenAI routes over real HTTP; the test writes down answers, latencies and faults."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[str, int], str]
"""(prompt, how many samples of it went before) -> completion."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away while they are answered are part of the tests."""


class FakeOpenAI:
    """Serves /v1/chat/completions and /v1/completions on a free port of this machine.

    Args:
        script: What it completes.
        faults: Prompt -> what befalls its first requests, one after another: an HTTP status; "drop" to cut the
            connection, "hang" to answer nothing; "drop midway", "hang midway" to do so once half the stream is sent;
            "fine" for nothing.
        ignore_n: Give one sample whatever is asked, as some servers do.
        count_tokens: Report usage: a token a letter.
        cut: Completions that end so are said to be cut off.
        latency: A sample's number in the script -> seconds that it takes; its text comes in PIECES over that time.
        by_seed: A sample's number in the script is the request's seed plus its place, as a server that heeds seeds.
        streams: Stream where it is asked to; else it answers whole, whatever is asked.
        ends_twice: Repeat every sample's end, without text, in the chunk that has the usage, as some gateways do.
        befall: (prompt, how many requests went before) -> a fault as above, of those that `faults` has none for.
    """

    PIECES = 4

    def __init__(
        self,
        script: Script,
        *,
        faults: dict[str, list[int | str]] | None = None,
        ignore_n: bool = False,
        count_tokens: bool = True,
        cut: str = "...",
        latency: Callable[[int], float] | None = None,
        by_seed: bool = False,
        streams: bool = True,
        ends_twice: bool = False,
        befall: Callable[[str, int], int | str] = lambda prompt, before: "fine",
    ) -> None:
        self.script, self.ignore_n, self.count_tokens, self.cut = script, ignore_n, count_tokens, cut
        self.faults = {prompt: list(some) for prompt, some in (faults or {}).items()}
        self.latency, self.by_seed, self.streams, self.befall = latency, by_seed, streams, befall
        self.ends_twice = ends_twice
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.drawn: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()  # samples that were sent to their end
        self.counted: Counter[str] = Counter()  # the usage that was reported
        self.closed: list[str] = []  # prompts of replies that the client closed before their end
        self.most_at_once = self.most_samples = self._now = self._samples = 0
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FakeOpenAI:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def bodies(self, prompt: str) -> list[dict[str, Any]]:
        return [body for seen, body in self.requests if seen == prompt]

    def begin(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        chat = path == "/v1/chat/completions"
        prompt = body["messages"][-1]["content"] if chat else body.get("prompt", "")
        reply = Reply(self, prompt, body, chat)
        if not chat and path != "/v1/completions":
            reply.fault = 404
            return reply
        with self.lock:
            reply.fault = self.befall(prompt, len(self.requests))
            self.requests.append((prompt, body))
            self.headers.append(headers)
            if self.faults.get(prompt):
                reply.fault = self.faults[prompt].pop(0)
            if isinstance(reply.fault, int) or reply.fault in ("drop", "hang"):
                return reply
            n = 1 if self.ignore_n else int(body.get("n") or 1)
            first = int(body["seed"]) if self.by_seed else self.drawn[prompt]
            reply.texts = [self.script(prompt, first + i) for i in range(n)]
            reply.seconds = [self.latency(first + i) if self.latency else 0.0 for i in range(n)]
            self.drawn[prompt] += n
        return reply

    def count(self, requests: int, samples: int) -> None:
        with self.lock:
            self._now += requests
            self._samples += samples
            self.most_at_once = max(self.most_at_once, self._now)
            self.most_samples = max(self.most_samples, self._samples)


class Reply:
    """One request's answer, whole or as a stream."""

    def __init__(self, fake: FakeOpenAI, prompt: str, body: dict[str, Any], chat: bool) -> None:
        self.fake, self.prompt, self.body, self.chat = fake, prompt, body, chat
        self.fault: int | str = "fine"
        self.texts: list[str] = []
        self.seconds: list[float] = []

    @property
    def streamed(self) -> bool:
        return self.fake.streams and bool(self.body.get("stream"))

    def whole(self) -> dict[str, Any]:
        choices = [
            {"index": i, "finish_reason": self._reason(text), **self._content("message", text)}
            for i, text in enumerate(self.texts)
        ]
        return {**self._frame(choices), **self.usage()}

    def chunks(self) -> list[tuple[float, int | None, dict[str, Any]]]:
        """(seconds from the start, the sample that ends with it, chunk)."""
        pieces, found = FakeOpenAI.PIECES, []
        for i, (text, seconds) in enumerate(zip(self.texts, self.seconds, strict=True)):
            size = -(-len(text) // pieces)
            for j in range(pieces):
                choice = {"index": i, "finish_reason": None, **self._content("delta", text[j * size : (j + 1) * size])}
                last = j == pieces - 1
                if last:
                    choice["finish_reason"] = self._reason(text)
                found.append((seconds * (j + 1) / pieces, i if last else None, self._frame([choice])))
        found.sort(key=lambda one: one[0])
        if self.usage() and (self.body.get("stream_options") or {}).get("include_usage"):
            again = [{"index": i, "finish_reason": self._reason(text), **self._content("delta", "")}
                     for i, text in enumerate(self.texts)] if self.fake.ends_twice else []  # fmt: skip
            found.append((max(self.seconds), None, {**self._frame(again), **self.usage()}))
        return found

    def usage(self) -> dict[str, Any]:
        if not self.fake.count_tokens:
            return {}
        counts = {"prompt_tokens": len(self.prompt), "completion_tokens": sum(map(len, self.texts))}
        return {"usage": {**counts, "total_tokens": sum(counts.values())}}

    def _frame(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": "x", "object": "x", "created": 0, "model": self.body["model"], "choices": choices}

    def _content(self, holder: str, text: str) -> dict[str, Any]:
        return {holder: {"role": "assistant", "content": text}} if self.chat else {"text": text}

    def _reason(self, text: str) -> str:
        return "length" if text.endswith(self.fake.cut) else "stop"


def _handler(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = fake.begin(self.path, body, {k.lower(): v for k, v in self.headers.items()})
            self.left = len(reply.texts)
            fake.count(1, self.left)
            try:
                self._answer(reply)
            finally:
                fake.count(-1, -self.left)

        def _answer(self, reply: Reply) -> None:
            if isinstance(reply.fault, int):
                said = json.dumps({"error": {"message": f"fault {reply.fault}"}}).encode()
                self._send(said, status=reply.fault)
            elif reply.fault == "drop":
                self._drop()
            elif reply.fault == "hang":
                self._hang(reply)
            elif reply.streamed:
                self._stream(reply)
            else:
                time.sleep(max(reply.seconds))
                self._send(json.dumps(reply.whole()).encode())
                self._counted(reply, len(reply.texts))

        def _send(self, data: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if status >= 400:
                self.send_header("retry-after-ms", "1")  # so that tests don't wait
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, reply: Reply) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            began, chunks = time.monotonic(), reply.chunks()
            for number, (at, ends, chunk) in enumerate(chunks):
                self._wait(max(0.0, began + at - time.monotonic()))
                if reply.fault.endswith("midway") and number == len(chunks) // 2:
                    return self._drop() if reply.fault == "drop midway" else self._hang(reply)
                if self._gone():
                    return self._left(reply)
                if ends is not None:  # counted before the client hears of it and asks for the next
                    self.left -= 1
                    fake.count(0, -1)
                    with fake.lock:
                        fake.finished[reply.prompt] += 1
                self._write(f"data: {json.dumps(chunk)}\n\n".encode())
            self._write(b"data: [DONE]\n\n")
            self._write(b"")
            self._counted(reply, 0)

        def _write(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _counted(self, reply: Reply, finished: int) -> None:
            with fake.lock:
                fake.finished[reply.prompt] += finished
                fake.counted.update(reply.usage().get("usage", {}))

        def _hang(self, reply: Reply) -> None:
            while not fake.ended.is_set():
                self._wait(0.05)
                if self._gone():
                    return self._left(reply)

        def _wait(self, seconds: float) -> None:
            """Until the client closes the connection, at most."""
            select.select([self.connection], [], [], seconds)

        def _gone(self) -> bool:
            try:
                return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True

        def _left(self, reply: Reply) -> None:
            with fake.lock:
                fake.closed.append(reply.prompt)
            self.close_connection = True

        def _drop(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            self.connection.close()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
