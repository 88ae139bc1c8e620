"""Every option of `rollwise bestof`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from rollwise.errors import ConfigError
from rollwise.inference.bestof.chosen import Chosen, setting_of
from rollwise.inference.policies.confidence import DeepConfPolicy
from rollwise.inference.policies.policies import PEERS, POLICIES, BestOfN, make_policy
from rollwise.inference.policies.selection import CHECKED, CHOICES, CONFIDENT, LIVE_RULES
from rollwise.inference.policies.until import UntilChecked
from rollwise.models import EMBEDDED
from rollwise.options import Count, CountOrZero, Positive, check_fields, check_number
from rollwise.sampling.config import SampleConfig

PolicyName: Any = Literal[tuple(POLICIES)]
Choice: Any = Literal[CHOICES]
HEADLESS = (BestOfN.name, *(peer.name for peer in PEERS))
"""Policies that need no success head."""


@dataclass(kw_only=True)
class BestOfConfig(SampleConfig):
    """Options of `rollwise bestof`.

    Args:
        head: A success head, made by `rollwise head fit`. Without one the policies are none, deepconf, esc,
            adaptive-consistency and check, and the answer is chosen by vote (`select`).
        transfer: Use a head although it was fitted on another model's weights, or does not say on which model.
        unviable: Use a head although it failed the viability gate of `rollwise head evaluate`: value@K was not above
            random@K.
        policy: With a head: none (full best-of-N), prune, early-stop, utility, utility-one-by-one, sequential, until.
            Without one: none, deepconf, esc (early-stopping self-consistency), adaptive-consistency or check.
        policy_options: The policy's own options, for example `--policy_options.threshold 0.4`. By default `warmup` is
            an eighth of `max_completion_length`, and `interval` a 32nd.
        check: For policy check: `file.py:function`, text -> bool. Candidates are drawn one after another until one
            passes. By default the task's own check, if it has one.
        evaluation: A folder of `rollwise head evaluate`, or its evaluation.json. Takes policy, policy_options,
            num_generations, mean_k and select from its cheapest setting within its tolerance. Warns if model, data or
            pass rate differ from the evaluation's.
        setting: With `evaluation`, the name of another of its settings.
        num_generations: Candidates of each prompt.
        mean_k: Adaptive K: draw this many candidates on average, more for prompts that look hard by the percentile rank
            of V(x), and at most `num_generations`.
        select: How the answer is chosen: value-end (the default with a head), majority or weighted-majority. Policy
            deepconf also has confident: the candidates at or above its threshold vote. Policy check also has checked:
            the candidates that pass vote, or all if none passes.
        task: The task whose verifier scores the file's prompts. Without one, and without a reward, nothing is scored.
        split: Of a task, "eval" for the held-out prompts (the default) or "train" for the training ones. By default a
            file is taken whole.
        temperature: Sampling temperature.
        top_k: Draw from this many of the likeliest tokens; 0 for all.
        max_completion_length: Most tokens of a candidate; by default the task's own limit, 512 for a file.
        slots: Most candidates generated at once, with `base_url` in flight at once; fewer need less memory.
        base_url: Instead of loading the model, ask this server with OpenAI's routes. Give the URL with its version,
            such as http://localhost:8000/v1. Each candidate is a streamed request; closing the stream stops it. `model`
            is then the server's name for the model, and `head` a folder of `rollwise head export`, which the server
            (vLLM) serves. Policies without a head run on any server.
        route: The server's route, "completions" or "chat"; by default completions with a head or policy deepconf, which
            need it, else chat.
        timeout: Seconds without an answer from the server after which a request is tried again.
        retries: How often a request to the server that fails (429, 5xx, a lost connection, a timeout) is tried again.
        api_key_env: Environment variable that holds the server's key; most local servers need none.
        keep_texts: "chosen" for the chosen text only, "all" for every candidate's text, tokens and values.
        out: The folder; by default bestof/NAME-POLICY.

    Raises:
        ConfigError: an option is out of its range.
    """

    head: str | None = None
    transfer: bool = False
    unviable: bool = False
    policy: PolicyName = "none"  # made of the table, for the command line
    policy_options: dict[str, Any] = field(default_factory=dict)
    check: str | None = None
    evaluation: str | None = None
    setting: str | None = None
    num_generations: Count = 8
    mean_k: int | None = None
    select: Choice | None = None
    split: Literal["train", "eval"] | None = None
    num_prompts: Count = 100
    top_k: CountOrZero = 0
    slots: Count = 64
    base_url: str | None = None
    route: Literal["completions", "chat"] | None = None
    timeout: Positive = 120.0
    retries: CountOrZero = 5
    api_key_env: str = "OPENAI_API_KEY"
    keep_texts: Literal["chosen", "all"] = "chosen"
    out: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        self.chosen: Chosen | None = self._take_setting()
        make_policy(self.policy, **self.policy_options)
        own = {DeepConfPolicy.name: CONFIDENT, UntilChecked.name: CHECKED} if self.head is None else {}
        self.select = self.select or own.get(self.policy, LIVE_RULES[0])
        for rule, whose in ((CONFIDENT, DeepConfPolicy.name), (CHECKED, UntilChecked.name)):
            if self.select == rule and self.policy != whose:
                raise ConfigError(f"select {rule!r} is the vote of policy {whose}, got policy {self.policy!r}")
        if self.check is not None and self.policy != UntilChecked.name:
            raise ConfigError(f"check {self.check!r} is for policy check, got policy {self.policy!r}")
        if self.head is None and (self.policy not in HEADLESS or self.mean_k is not None):
            what = f"policy {self.policy!r}" if self.policy not in HEADLESS else "mean_k"
            raise ConfigError(f"{what} needs a success head: add --head, which `rollwise head fit` makes")
        if self.head is None and self.select not in ("majority", CONFIDENT, CHECKED):
            raise ConfigError(f"select {self.select!r} needs a success head: add --head, or --select majority")
        if self.mean_k is not None:
            check_number("mean_k", self.mean_k, low=1, high=self.num_generations)
        self._check_server()
        super().__post_init__()

    def _check_server(self) -> None:
        if self.base_url is None:
            for name in ("route", "timeout", "retries", "api_key_env"):
                if getattr(self, name) != getattr(BestOfConfig, name):
                    raise ConfigError(f"{name} {getattr(self, name)!r} is a server's: add --base_url")
            return
        if self.model == EMBEDDED:
            raise ConfigError("base_url needs the name by which the server knows the model: add --model NAME")
        if self.mean_k is not None:
            raise ConfigError("mean_k reads all prompts before the first candidate, which a server can't; leave it out")
        if self.route == "chat" and (self.head is not None or self.policy == DeepConfPolicy.name):
            raise ConfigError("a head, and policy deepconf, need --route completions; leave out --route chat")
        if self.keep_texts == "all" and self.head is None:
            raise ConfigError("keep_texts 'all' keeps tokens, which a server names only with a head; leave it out")

    def _take_setting(self) -> Chosen | None:
        if self.evaluation is None:
            if self.setting is not None:
                raise ConfigError(f"setting {self.setting!r} is one of an evaluation: add --evaluation FOLDER")
            return None
        chosen = setting_of(self.evaluation, self.setting)
        for option in fields(self):
            if option.name not in chosen.options:
                continue
            name, value = option.name, chosen.options[option.name]
            default = option.default if option.default_factory is MISSING else option.default_factory()
            if getattr(self, name) not in (default, value):
                raise ConfigError(
                    f"{name} is {value!r} in setting {chosen.name!r} of {self.evaluation!r}, and "
                    f"{getattr(self, name)!r} is given; leave out one of --evaluation and --{name}"
                )
            setattr(self, name, value)
        if chosen.headless and self.head is not None:
            raise ConfigError(f"setting {chosen.name!r} needs no success head; leave out --head")
        return chosen

    @property
    def folder(self) -> Path:
        """Where the answers go."""
        return Path(self.out or f"bestof/{self.stem}-{self.policy}")

    def deciding(self) -> dict[str, Any]:
        """The options that decide the answers: a folder goes on with the same ones only."""
        free = {"slots", "out", "evaluation", "setting", "transfer", "unviable"}
        free |= {"base_url", "timeout", "retries", "api_key_env"}
        return self.decided(free)
