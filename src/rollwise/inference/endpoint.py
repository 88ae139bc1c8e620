"""Self-consistency over any OpenAI-compatible endpoint, stopped early: no head, no weights, no log-probabilities.

Each prompt asks for a window of samples at a time, extracts their answers, and stops when its rule is content; several
prompts at once. What is done is kept in a file, a line a prompt, and the same command goes on with the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rollwise.answers import final_answer, normalised, recorded_answer, same_answer
from rollwise.errors import ConfigError, MissingExtraError, RewardError, RollwiseError
from rollwise.inference.consistency import Answer, StoppingRule, majority
from rollwise.inference.endpoint_config import EndpointConfig
from rollwise.inference.endpoint_failures import BadReplyError, Watch, one_line
from rollwise.inference.endpoint_reply import Reply, read_reply
from rollwise.sampling.scoring import load_reward

Line = dict[str, Any]
"""A prompt's line: id, answers (n,), chosen, why, samples, requests, prompt_tokens, completion_tokens, truncated, texts
(n,), and `correct` where an answer is recorded."""

Ask = Callable[[Any, int, int | None], Awaitable[Reply]]
"""(prompt, samples wanted, seed or None) -> Reply."""


class Endpoint:
    """An OpenAI-compatible endpoint, by the `openai` client, which retries and times out.

    Args:
        config: Where, and how samples are drawn.

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
        self.openai = _import_openai()
        self.client = self.openai.AsyncOpenAI(
            base_url=config.base_url,
            api_key=key,
            timeout=config.timeout,
            max_retries=config.retries,
        )

    async def ask(self, prompt: Any, n: int, seed: int | None) -> Reply:
        """`n` samples of a prompt; fewer if the endpoint gives fewer.

        Raises:
            BadReplyError: the endpoint answered with no sample that can be read, or the prompt can't be sent.
            ConfigError: it refuses every request of this kind: a wrong key, an unknown model or route.
        """
        config = self.config
        options: dict[str, Any] = {
            "model": config.model,
            "n": n,
            "temperature": config.temperature,
            "top_p": config.top_p,
            "max_tokens": config.max_tokens,
            "extra_body": config.extra or None,
        }
        if seed is not None:
            options["seed"] = seed
        try:
            if config.route == "chat":
                given = await self.client.chat.completions.create(messages=self._messages(prompt), **options)
            else:
                given = await self.client.completions.create(prompt=prompt, **options)
        except (
            self.openai.AuthenticationError,
            self.openai.PermissionDeniedError,
            self.openai.NotFoundError,
        ) as error:
            raise ConfigError(
                f"{config.base_url} refuses: {one_line(error)}; look at --base_url, --model, --route and the key in "
                f"{config.api_key_env}"
            ) from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise BadReplyError(
                f"{config.base_url} answered with what is no JSON: {error}; is it an OpenAI-compatible endpoint?",
                of_endpoint=True,
            ) from error
        except ValueError as error:  # half a character, say
            raise BadReplyError(f"the prompt can't be sent: {error}; mend or remove it") from error
        return read_reply(given, chat=config.route == "chat", base_url=config.base_url)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    def _messages(self, prompt: Any) -> list[dict[str, Any]]:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        return (
            messages if self.config.system is None else [{"role": "system", "content": self.config.system}, *messages]
        )


class Extractor:
    """Finds a completion's answer: by the usual marks, or by a user's function.

    Args:
        where: `file.py:function` or `package.module:function`; None for the usual marks.
    """

    def __init__(self, where: str | None = None) -> None:
        self.where, self.hash = where, ""
        self.function: Callable[[str], Any] = final_answer
        if where is not None:
            try:
                self.function, self.hash = load_reward(where)
            except ConfigError as error:
                raise ConfigError(f"--answer: {error}") from error

    def __call__(self, text: str) -> Answer:
        """The answer as text; None where there is none. Numbers count as text: 4 is "4"."""
        try:
            found = self.function(text)
        except RollwiseError:
            raise
        except Exception as error:
            raise RewardError(f"{self.where} raised {error!r} for the completion {text!r:.80}; mend it") from error
        if found is not None and not isinstance(found, str | int | float):
            raise RewardError(f"{self.where} must give an answer as text, or None, got {found!r:.80}")
        answer = None if found is None else str(found).strip()
        return answer or None


async def draw_until_agreed(
    prompt: Any, ask: Ask, extract: Callable[[str], Answer], rule: StoppingRule, *, k: int, seed: int | None = None
) -> Line:
    """Draw samples of a prompt until `rule` is content, or there are K; the prompt's line, without id and text kept.

    Answers that differ only in case, spaces, commas, dollar signs or as 4 and 4.0 are one answer; it is written as it
    came up first.
    """
    texts: list[str] = []
    answers: list[Answer] = []
    truncated, requests = 0, 0
    tokens: dict[str, int | None] = {"prompt_tokens": 0, "completion_tokens": 0}
    why = "budget"
    while want := rule.draw(k, len(answers)):
        while want > 0:  # an endpoint that ignores n gives one at a time
            reply = await ask(prompt, want, None if seed is None else seed + requests)
            requests += 1
            texts += reply.texts[:want]
            cut = reply.truncated[:want]
            truncated += sum(cut)
            new = (None if lost else extract(text) for text, lost in zip(reply.texts[:want], cut, strict=True))
            answers += _unified(answers, new)
            want -= len(cut)
            for name in tokens:
                now, more = tokens[name], getattr(reply, name)
                tokens[name] = None if now is None or more is None else now + more
        if rule.agreed(answers):
            why = "agreed"
            break
    chosen = majority(answers)
    samples = {"samples": len(answers), "requests": requests, **tokens, "truncated": truncated}
    return {"answers": answers, "chosen": chosen, "why": why, **samples, "texts": texts}


async def answer_all(
    ids: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    config: EndpointConfig,
    ask: Ask,
    extract: Callable[[str], Answer],
    keep: Callable[[Line], None],
    *,
    resumed: bool = False,
) -> dict[str, str]:
    """Answer N prompts, several at once; each line goes to `keep` as soon as it is there.

    Args:
        ids: The prompts' ids.
        rows: Their rows of the data, each with a `prompt`.
        config: How they are asked.
        ask: Asks for samples.
        extract: Finds a sample's answer.
        keep: Takes a line.
        resumed: Whether other prompts are done: should the endpoint be down, the rest is left instead of an error.

    Returns:
        Of prompts that failed, or were not asked any more: id -> what went wrong.

    Raises:
        ConfigError: the endpoint refuses everything, or nothing but failures comes from it.
        RewardError: the user's function that extracts answers fails.
    """
    openai = _import_openai()
    rule, slots = config.stopping_rule(), asyncio.Semaphore(config.at_once)
    failures: dict[str, str] = {}
    watch = Watch(len(ids), done=resumed)

    def hopeless() -> str:
        return f"nothing but failures from {config.base_url}, the last: {watch.last}; look at the server"

    async def one(at: int) -> None:
        row, seed = rows[at], None if config.seed is None else seed_of(config.seed, ids[at])
        async with slots:
            if watch.down():
                failures[ids[at]] = f"not asked: {hopeless()}"
                return
            watch.begin(at)
            try:
                line = await draw_until_agreed(row["prompt"], ask, extract, rule, k=config.k, seed=seed)
            except (openai.APIError, BadReplyError) as error:
                failures[ids[at]] = one_line(error)
                watch.failed(at, error)
                if watch.down() and not resumed:
                    raise ConfigError(hopeless()) from error
                return
        keep(_finished(line, ids[at], row, config))
        watch.succeeded()

    tasks = [asyncio.create_task(one(at)) for at in range(len(ids))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return failures


def seed_of(seed: int, id_: str) -> int:
    """A prompt's first seed, its own and below 2^31; its requests count on from there.

    >>> seed_of(0, "a") == seed_of(0, "a"), seed_of(0, "a") == seed_of(0, "b")
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(f"{seed}/{id_}".encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 2


def _finished(line: Line, id_: str, row: Mapping[str, Any], config: EndpointConfig) -> Line:
    recorded = recorded_answer(dict(row), config.answer_column)
    if recorded is not None:
        line["correct"] = line["chosen"] is not None and same_answer(line["chosen"], recorded)
    if not config.keep_texts:
        del line["texts"]
    return {"id": id_, **line}


def _unified(known: Sequence[Answer], new: Any) -> list[Answer]:
    """New answers, each written as the first that is the same."""
    firsts = list(dict.fromkeys(answer for answer in known if answer is not None))
    written: list[Answer] = []
    for answer in new:
        if answer is not None:
            same = next((first for first in firsts if _same(first, answer)), None)
            if same is None:
                firsts.append(answer)
            answer = same or answer
        written.append(answer)
    return written


def _same(one: str, other: str) -> bool:
    return one == other or (bool(normalised(one)) and same_answer(one, other))


def _import_openai() -> Any:
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtraError(f'asking an endpoint needs {error.name}; pip install "rollwise[serve]"') from error
    return openai
