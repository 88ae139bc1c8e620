"""A stand-in for vLLM's OpenAI server: its streamed completions over real HTTP, with a real model inside.

As vLLM 0.32 answers `/v1/completions` with `logprob_token_ids`, `return_tokens_as_token_ids` and `return_token_ids`:
raw log-probabilities of the rows that were asked for, a chunk a token, the usage in a last chunk without choices. A
closed stream ends generation.
"""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import torch
from fake_openai import _Server


class FakeVLLMServer:
    """Serves a model on a free port of this machine.

    Args:
        model: Generates.
        tokenizer: Its own.
        pause: Seconds between two tokens of a stream.
        knows_rows: Whether it heeds `logprob_token_ids`, or leaves it out as an older server.
        befall: Number of a request -> an HTTP status to fail with, "drop" to cut it after three tokens, or "".
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        pause: float = 0.0,
        knows_rows: bool = True,
        befall: Callable[[int], int | str] = lambda number: "",
    ) -> None:
        self.model, self.tokenizer, self.pause, self.knows_rows = model, tokenizer, pause, knows_rows
        self.befall = befall
        self.requests: list[dict[str, Any]] = []
        self.generated = self.closed = self.whole = 0
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FakeVLLMServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @torch.no_grad()
    def step(self, body: dict[str, Any], ids: list[int], generator: torch.Generator) -> tuple[int, dict[str, float]]:
        """The next token, and what is said of the position."""
        with self.lock:
            logits = self.model(input_ids=torch.tensor([ids])).logits[0, -1].double()
            self.generated += 1
        raw = logits.log_softmax(-1)
        for row, bias in (body.get("logit_bias") or {}).items():
            logits[int(row)] += bias
        token = int(torch.multinomial((logits / body["temperature"]).softmax(-1), 1, generator=generator))
        rows = [*(body.get("logprob_token_ids") or []), token] if self.knows_rows else [token]
        return token, {f"token_id:{row}": float(raw[row]) for row in rows}


def _handler(fake: FakeVLLMServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with fake.lock:
                fake.requests.append(body)
                fault = fake.befall(len(fake.requests) - 1)
            if isinstance(fault, int):
                said = json.dumps({"error": {"message": f"fault {fault}"}}).encode()
                self.send_response(fault)
                self.send_header("Content-Length", str(len(said)))
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                self.wfile.write(said)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if self._generate(body, fault == "drop"):
                self._write(b"data: [DONE]\n\n")
                self._write(b"")

        def _generate(self, body: dict[str, Any], drop: bool) -> bool:
            prompt, tokens, text = body["prompt"], list[int](), ""
            if isinstance(prompt, str):
                prompt = fake.tokenizer(prompt)["input_ids"]
            generator = torch.Generator().manual_seed(body["seed"])
            finish = None
            while finish is None:
                token, said = fake.step(body, [*prompt, *tokens], generator)
                tokens.append(token)
                now = fake.tokenizer.decode(tokens, skip_special_tokens=True)
                if token == fake.tokenizer.eos_token_id or any(stop in now for stop in body.get("stop") or []):
                    finish = "stop"
                elif len(tokens) == body["max_tokens"]:
                    finish = "length"
                choice: dict[str, Any] = {"index": 0, "text": now[len(text) :], "finish_reason": finish}
                if body.get("return_token_ids"):
                    choice |= {"token_ids": [token], "logprobs": {"top_logprobs": [said]}}
                text = now
                self._send([choice])
                if drop and len(tokens) == 3:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return False
                select.select([self.connection], [], [], fake.pause)
                if self._gone():
                    with fake.lock:
                        fake.closed += 1
                    self.close_connection = True
                    return False
            with fake.lock:
                fake.whole += 1
            self._send([], usage={"prompt_tokens": len(prompt), "completion_tokens": len(tokens)})
            return True

        def _send(self, choices: list[dict[str, Any]], **more: Any) -> None:
            chunk = {"id": "x", "object": "text_completion", "created": 0, "model": "m", "choices": choices, **more}
            self._write(f"data: {json.dumps(chunk)}\n\n".encode())

        def _write(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _gone(self) -> bool:
            try:
                return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
