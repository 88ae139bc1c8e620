"""An OpenAI-compatible endpoint: one request, streamed, given up on silence, closed when it is not needed any more."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from typing import Any

from rollwise.errors import ConfigError, MissingExtraError
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.replies import BadReplyError, BrokenReplyError, Reply, one_line

_CONNECT = 10.0
"""Seconds to get a connection in; what takes longer is no queue but a server that is not there."""


class Endpoint:
    """An OpenAI-compatible endpoint, by the `openai` client, which tries again until a reply begins.

    Args:
        config: Where, and how samples are drawn.

    Attributes:
        passing: Errors that end one prompt alone.

    Raises:
        MissingExtraError: the `serve` extra is not installed.
        ConfigError: the key holds what no HTTP header can.
    """

    def __init__(self, config: EndpointConfig) -> None:
        self.config = config
        key = os.environ.get(config.api_key_env) or "none"  # the client refuses to have none
        if not (key.isascii() and key.isprintable() and key == key.strip()):  # the key itself is never shown
            raise ConfigError(
                f"the key in {config.api_key_env} has what no HTTP header can hold, as an accent, a line end or a "
                "space at its end; set it to the key alone"
            )
        self.openai = import_openai()
        self.passing = (self.openai.APIError, BadReplyError)
        self.client = self.openai.AsyncOpenAI(
            base_url=config.base_url,
            api_key=key,
            # The seconds are of silence: each read begins them anew. `Slots` bounds the requests, so no pool has to.
            timeout=self.openai.Timeout(config.timeout, connect=min(config.timeout, _CONNECT), pool=None),
            max_retries=config.retries,
        )

    async def ask(self, prompt: Any, n: int, seed: int | None, reply: Reply) -> None:
        """Ask once for `n` samples of a prompt; `reply` takes each as it is finished. Fewer may come.

        Cancelled, the stream is closed, which tells the server to stop.

        Raises:
            BrokenReplyError: the reply broke off, or went silent; it may be asked for again.
            BadReplyError: the endpoint answered with no sample that can be read, or the prompt can't be sent.
            ConfigError: it refuses every request of this kind: a wrong key, an unknown model or route.
            openai.APIError: there is no reply, after all retries.
        """
        chat, base_url = self.config.route == "chat", self.config.base_url
        try:
            raw = await self.open(prompt, n, seed)
        except asyncio.CancelledError:
            reply.began = True  # it may have read the prompt by now
            raise
        reply.began = True
        chunks = self.chunks(raw)
        try:
            if "text/event-stream" not in raw.headers.get("content-type", ""):  # not all servers stream
                reply.add_whole(await self.whole(raw), n, chat=chat, base_url=base_url)
                return
            async for chunk in chunks:
                reply.add_chunk(chunk, n, chat=chat, base_url=base_url)
        finally:
            await chunks.aclose()
            await raw.http_response.aclose()
        if not reply.taken:
            raise BrokenReplyError(f"{base_url} ended a stream without a finished sample; see the server's log")

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def open(self, prompt: Any, n: int, seed: int | None) -> Any:
        """The reply as soon as it begins, its body unread; errors as for `ask`."""
        config = self.config
        options: dict[str, Any] = {
            "model": config.model,
            "n": n,
            "temperature": config.temperature,
            "top_p": config.top_p,
            "max_tokens": config.max_completion_length,
            "extra_body": config.extra or None,
        }
        if config.stream:
            options.update(stream=True, stream_options={"include_usage": True})
        if config.stops:
            options["stop"] = config.stops
        if seed is not None:
            options["seed"] = seed
        try:
            if config.route == "chat":
                route = self.client.chat.completions
                return await route.with_raw_response.create(messages=self._messages(prompt), **options)
            return await self.client.completions.with_raw_response.create(prompt=prompt, **options)
        except (
            self.openai.AuthenticationError,
            self.openai.PermissionDeniedError,
            self.openai.NotFoundError,
        ) as error:
            raise ConfigError(
                f"{config.base_url} refuses: {one_line(error)}; look at --base_url, --model, --route and the key in "
                f"{config.api_key_env}"
            ) from error
        except self.openai.APITimeoutError as error:
            tries = f", {config.retries + 1} times" if config.retries else ""
            if "Connect" in type(error.__cause__).__name__:
                what = f"gave no connection{tries}; look at --base_url"
            else:
                what = f"was silent for {config.timeout:g} s{tries}; where requests wait, lower --concurrency"
            raise BadReplyError(f"{config.base_url} {what}", of_endpoint=True) from error
        except ValueError as error:  # half a character, say
            raise BadReplyError(f"the prompt can't be sent: {error}; mend or remove it") from error

    async def whole(self, raw: Any) -> Any:
        """A reply that is no stream, as JSON gives it; `BrokenReplyError` if it breaks off."""
        try:
            body = await raw.http_response.aread()
        except Exception as error:  # whatever the HTTP library of this `openai` raises
            raise BrokenReplyError(f"{self.config.base_url} broke off its reply: {error!r:.200}") from error
        try:
            return json.loads(body)
        except ValueError as error:
            raise self._no_json(error) from error

    async def chunks(self, raw: Any) -> AsyncGenerator[Any, None]:
        """A stream's chunks, as JSON gives them; `BrokenReplyError` if it breaks off."""
        stream = self.openai.AsyncStream(cast_to=object, response=raw.http_response, client=self.client)
        try:
            async for chunk in stream:
                yield chunk
        except self.openai.APITimeoutError as error:
            raise BrokenReplyError(
                f"{self.config.base_url} went silent for {self.config.timeout:g} s midway"
            ) from error
        except self.openai.APIError as error:
            raise BrokenReplyError(f"{self.config.base_url} broke off midway: {one_line(error)}") from error
        except ValueError as error:
            raise self._no_json(error) from error

    def _no_json(self, error: ValueError) -> BadReplyError:
        return BadReplyError(
            f"{self.config.base_url} answered with what is no JSON: {error}; is it an OpenAI-compatible endpoint?",
            of_endpoint=True,
        )

    def _messages(self, prompt: Any) -> list[dict[str, Any]]:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        return (
            messages if self.config.system is None else [{"role": "system", "content": self.config.system}, *messages]
        )


def import_openai() -> Any:
    """The `openai` package; `MissingExtraError` without the extra `serve`."""
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtraError(f'asking an endpoint needs {error.name}; pip install "rollwise[serve]"') from error
    return openai
