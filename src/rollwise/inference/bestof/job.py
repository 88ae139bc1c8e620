"""What the options of `rollwise bestof` name: prompts, scorer, head, policy, check, how candidates are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.gates import check_gates
from rollwise.inference.bestof.server import head_file
from rollwise.inference.decoding.decoder import DecodingOptions
from rollwise.inference.evaluation.text_check import TextCheck, check_for
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.policies import AnswerKey, Policy, UntilChecked, answer_key, policy_for, with_defaults
from rollwise.models import is_embedded
from rollwise.sampling.data import PromptData, load_data, sampling_order
from rollwise.sampling.files import is_file_like
from rollwise.sampling.scoring import Scorer
from rollwise.sampling.setting import completion_length, make_scorer, make_task_of, stop_texts
from rollwise.tasks import TASKS, Task


@dataclass(frozen=True)
class Job:
    """Everything but the model.

    Attributes:
        config: The options.
        task: Whose prompts or verifier they are; None with a reward function, or with nothing that scores.
        data: The prompts.
        rows: (N,) which of them are answered, in the order of the sample.
        scorer: Scores the answers; None where nothing does.
        reward_hash: Of the reward function's file.
        head: The success head, if there is one.
        options: How candidates are drawn.
        policy: Which candidates are given up.
        check: Of a text, for policy `check`.
    """

    config: BestOfConfig
    task: Task | None
    data: PromptData
    rows: list[int]
    scorer: Scorer | None
    reward_hash: str
    head: SuccessHead | None
    options: DecodingOptions
    policy: Policy
    check: TextCheck | None

    @property
    def ids(self) -> list[str]:
        """(N,) ids of the prompts."""
        return [self.data.ids[row] for row in self.rows]

    @property
    def prompts(self) -> list[Any]:
        """(N,) the prompts."""
        return [self.data.prompts[row] for row in self.rows]

    @property
    def vote(self) -> AnswerKey:
        """What answers a text, for the policies that look at answers."""
        return answer_key if self.check is None else self.check.vote

    def decided(self) -> dict[str, Any]:
        """What decides the answers: a folder goes on with the same only."""
        config, limit = self.config, self.options.max_new_tokens
        return {
            **config.deciding(),
            "policy_options": with_defaults(
                config.policy, config.policy_options, k=config.num_generations, limit=limit
            ),
            "max_completion_length": limit,
            "stop": list(self.options.stop),
            "head_digest": None if self.head is None else self.head.digest,  # the same file may hold another head
            "check_digest": None if self.check is None else self.check.digest,
            "data_hash": self.data.fingerprint(),
            "reward_hash": self.reward_hash,
        }


def read_job(config: BestOfConfig) -> Job:
    """Read data, head and check, and make the policy.

    Raises:
        ConfigError: options that don't fit, or a policy that can never act.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used.
    """
    scored = config.source in TASKS or config.task is not None or bool(config.rewards)
    task = make_task_of(config) if scored or not is_file_like(config.sources[0]) else None
    scorer, reward_hash = make_scorer(config, task)
    data = load_data(config, task, split=config.split or ("eval" if config.source in TASKS else None))
    if task is None and is_embedded(config.model):
        raise ConfigError(
            f"the embedded policy is a task's own, and {config.source!r} is no task: name a model with --model, or the "
            "task with --task"
        )
    if scored:
        scorer.check(data.rows[0])
    head = None if config.head is None else SuccessHead.load(head_file(config), without_facts=config.transfer)
    limit = completion_length(config, task)
    options = DecodingOptions(
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        stop=stop_texts(config, task),
        max_new_tokens=limit,
        slots=config.slots,
        seed=config.seed,
    )
    policy = policy_for(config.policy, config.policy_options, k=config.num_generations, limit=limit)
    if head is not None:
        check_gates(config, head, policy)
    check = check_for(config.check, task) if config.policy == UntilChecked.name else None
    rows = sampling_order(data.ids, data.categories, config.seed)[: config.num_prompts]
    return Job(config, task, data, rows, scorer if scored else None, reward_hash, head, options, policy, check)
