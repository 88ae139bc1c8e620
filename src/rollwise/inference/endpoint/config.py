"""Every option of `rollwise consistency`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from rollwise.errors import ConfigError
from rollwise.inference.policies.agreement import EarlyStopping, StoppingRule, make_rule
from rollwise.options import (
    Count,
    CountOrZero,
    NonEmptyText,
    PositiveShare,
    Range,
    Temperature,
    check_fields,
    check_text,
    listed,
)
from rollwise.tickets.outcome import RewardSpec

Price = Annotated[float, Range(0.0, 1e9)]

_FREE = (
    *("out", "num_prompts", "base_url", "api_key_env", "price_in", "price_out"),
    *("concurrency", "n", "ahead", "stream", "timeout", "retries"),
)
"""Options that do not decide the results."""


@dataclass(frozen=True, kw_only=True)
class EndpointConfig:
    r"""Options of `rollwise consistency`.

    Args:
        data: A .jsonl, .json, .csv or .parquet file with a column of prompts.
        prompt_column: The column of prompts: text or chat messages. It may be a path into nested columns, such as
            `extra_info.question`.
        where: Use only the rows for which `COLUMN OP VALUE` holds, for example "difficulty >= 3". OP is one of ==, !=,
            <, <=, >, >=, in, not in. If several conditions are given, all must hold.
        template: The text of the prompt, with the columns in braces, for example "{prompt} Put the answer in
            \boxed{{}}." Or the name of a paper's template: `boxed` (METIS), `sec` or `sec-math` (SEC).
        base_url: The URL of the endpoint with its version, such as http://localhost:8000/v1.
        model: The endpoint's name for the model.
        out: File of the results, a JSON line for each prompt; by default consistency/NAME-RULE.jsonl.
        rule: "adaptive" stops once the majority is safe, "esc" once all answers of a window agree, "full" never.
        num_generations: Most samples of a prompt.
        window: The rule is applied each time this many samples have been added; by default 1 for adaptive, 5 for esc
            (or `num_generations` if that is less), all for full.
        threshold: For adaptive: the probability that the majority stays the majority at which it stops; by default
            0.95.
        same: How answers are compared, in votes and with the recorded answer: "text" (4.0 is 4; case, spaces and commas
            do not matter) or "math" (\frac{1}{2} is 0.5, 10\% is 10; needs the extra [math]).
        answer_function: A function of a completion's text that returns its answer or None, such as
            `answers.py:last_line`. By default the answer is in the last \boxed{}, in <answer>, or after #### or "the
            answer is", else it is the last number.
        route: "chat" (/chat/completions) or "completions" (/completions, text prompts as they are).
        system: A system message before each prompt, with route chat.
        temperature: Sampling temperature. The samples must differ, or agreement means nothing.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        max_completion_length: Most tokens of a sample; one that is cut off counts as having no answer.
        stop: Texts that end a sample, besides the end of text, for example `--stop "</answer>"`. A server leaves them
            out of its reply; they are put back.
        seed: If given, each request is sent with a seed of its own, made from this one; some endpoints ignore it.
        extra: Further fields of each request, for example `--extra '{"top_k": 20}'`.
        id: The file's column of ids; without one a prompt's id is the hash of its content.
        answer_column: The column of recorded answers, to count which chosen answers are right; by default `answer`,
            `ground_truth` or the like, if there is one.
        reward: A reward function of TRL's signature, such as `rewards.py:accuracy`, that says whether the chosen answer
            is right, in place of the recorded answer. It scores the first completion with that answer.
        reward_low: The lowest reward of that function.
        reward_high: The highest reward of that function.
        solved_at: The lowest reward with which an answer counts as right; by default `reward_high`.
        num_prompts: Use only the first prompts, this many.
        concurrency: Most samples in flight, of all prompts together. Lower it for a server that lets requests wait.
        n: Most samples of one request, which share the prompt's tokens; by default as many as are wanted at once. Give
            1 for a server that refuses more, or always returns one.
        ahead: How many samples to request beyond the fewest with which the rule could stop. More take less time and
            cost more tokens; those that are not needed are cancelled. By default, and with the default window, as many
            as cost the same as reading the prompt again, in the same request.
        stream: Stream the replies. Without streams a cancelled reply is paid for in full, and a long one may time out.
        timeout: Seconds without an answer after which a request is tried again.
        retries: How often a request that fails (429, 5xx, a lost connection, a timeout) is tried again, with growing
            waits.
        price_in: Price of a million input tokens; the summary then says what was paid and saved.
        price_out: Price of a million output tokens; give both prices or none.
        api_key_env: Environment variable that holds the key; most local servers need none.
        keep_texts: Keep the completions in the file, not only their answers.

    Raises:
        ConfigError: an option is missing or out of its range.
    """

    data: str = ""
    prompt_column: NonEmptyText = "prompt"
    where: list[str] | str | None = None
    template: str | None = None
    base_url: str = ""
    model: str = ""
    out: str | None = None
    rule: Literal["adaptive", "esc", "full"] = "adaptive"
    num_generations: Count = 40
    window: Count | None = None
    threshold: float | None = None
    same: Literal["text", "math"] = "text"
    answer_function: str | None = None
    route: Literal["chat", "completions"] = "chat"
    system: str | None = None
    temperature: Temperature = 0.7
    top_p: PositiveShare = 1.0
    max_completion_length: Count = 1024
    stop: list[str] | str | None = None
    seed: CountOrZero | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    id: str = "id"
    answer_column: str | None = None
    reward: str | None = None
    reward_low: float = 0.0
    reward_high: float = 1.0
    solved_at: float | None = None
    num_prompts: Count | None = None
    concurrency: Count = 64
    n: Count | None = None
    ahead: CountOrZero | None = None
    stream: bool = True
    timeout: Annotated[float, Range(0.0, 1e6, open_low=True)] = 120.0
    retries: CountOrZero = 5
    price_in: Price | None = None
    price_out: Price | None = None
    api_key_env: str = "OPENAI_API_KEY"
    keep_texts: bool = True

    def __post_init__(self) -> None:
        for name, example in (("base_url", "http://localhost:8000/v1"), ("model", "Qwen/Qwen2.5-0.5B-Instruct")):
            if not getattr(self, name):
                raise ConfigError(f"{name} is missing; for example --{name} {example}")
        for text in self.stops:
            check_text("stop", text)
        for name in ("base_url", "model", "system", "extra", "stop"):
            _check_sendable(name, getattr(self, name))
        if not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url must begin with http:// or https://, got {self.base_url!r}")
        if self.system is not None and self.route != "chat":
            raise ConfigError("a system message goes with --route chat; write it into the prompts, or leave it out")
        check_fields(self)
        if (self.price_in is None) != (self.price_out is None):
            raise ConfigError("price_in and price_out go together; give both, 0 for what costs nothing")
        self._check_right()
        self.stopping_rule()
        if self.rule == "esc" and self.window is not None and self.window > self.num_generations:
            raise ConfigError(
                "with esc window must be at most num_generations, else no window is ever whole: got "
                f"window={self.window} and num_generations={self.num_generations}; raise num_generations or lower it"
            )

    @property
    def stops(self) -> list[str]:
        """`stop` as a list."""
        return listed(self.stop)

    def stopping_rule(self) -> StoppingRule:
        """The rule, made of its options."""
        window = self.window
        if window is None and self.rule == "esc":
            window = min(EarlyStopping.window, max(2, self.num_generations))
        return make_rule(self.rule, window=window, threshold=self.threshold)

    def reward_spec(self) -> RewardSpec:
        """The range of `reward`, and from where on an answer is right."""
        return RewardSpec(low=self.reward_low, high=self.reward_high, solved_at=self.solved_at)

    def per_request(self) -> int:
        """Most samples that one request may ask for."""
        window = self.window if self.rule == "full" else None
        return min(
            self.n or self.num_generations, window or self.num_generations, self.num_generations, self.concurrency
        )

    def deciding(self) -> dict[str, Any]:
        """The options that decide the results; a file goes on with the same ones only."""
        free = _FREE if self.stops else (*_FREE, "stop")  # files made before have none
        return {name: value for name, value in asdict(self).items() if name not in free}

    def _check_right(self) -> None:
        if self.reward is None and (self.reward_low, self.reward_high, self.solved_at) != (0.0, 1.0, None):
            raise ConfigError("reward_low, reward_high and solved_at describe --reward; add it")
        if self.reward is not None and self.answer_column is not None:
            raise ConfigError("reward and answer_column both say what is right; leave one out")
        if self.reward is not None and not self.keep_texts:
            raise ConfigError("reward scores completions, which keep_texts false does not keep; leave one out")
        self.reward_spec()


def _check_sendable(name: str, value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:  # bytes that are no UTF-8 come in as half characters
        raise ConfigError(f"{name} can't be sent to an endpoint: {error}; mend {value!r:.80}") from error
