"""Curricula over conversations with tools: TRL's own tool loop, a real tiny policy that calls them, real rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from judging import LetterFormat, ToyMETIS
from toys import Traced, make_trainer, toy_tokenizer
from trl import GRPOConfig

import rollwise as rw
from rollwise.errors import ConfigError
from rollwise.gates import make_dynamic_sampling
from rollwise.models import load_policy
from rollwise.models.tool_policy import SMALL, conversation_rows, phrase_tokenizer, tool_policy
from rollwise.models.warm_start import warm_start_rows
from rollwise.tasks import Boxes, Countdown, ToolError
from rollwise.tasks.boxes.task import BoxesEnvironment
from rollwise.tasks.tool_conversation import Conversation, tools_of
from rollwise.training import CurriculumGRPOTrainer
from rollwise.training.generation.groups import Groups
from rollwise.training.trainer.environments import environment_arguments, environment_options, generated_lengths

PROMPTS, GROUP = 6, 4
TASK = Boxes(turns=(1, 2), orders=2, slips=0.2)
# Enough for calls that are well formed and sometimes right.
QUICK = replace(SMALL, num_layers=1, num_demos=640, sft_steps=80, sft_batch_size=16, learning_rate=5e-3)


@pytest.fixture(scope="module")
def policy(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    cache = once("tool-policy", lambda folder: tool_policy(TASK, config=QUICK, cache_dir=folder))
    return tool_policy(TASK, config=QUICK, cache_dir=cache)


class Lengths(CurriculumGRPOTrainer):
    """Notes how long completions are with and without tool results."""

    def _roll_out(self, *args: Any) -> Any:
        call = super()._roll_out(*args)
        self.own = call.lengths.tolist()
        self.whole = call.output["completion_mask"].sum(dim=1).tolist()
        return call


def trainer_of(
    policy: Path,
    out: Path,
    *,
    environment: Any = TASK.environment,
    steps: int = 3,
    curriculum: rw.Curriculum | None = None,
    **more: Any,
) -> tuple[Lengths, list[Groups]]:
    model, tokenizer = load_policy(policy)
    seen: list[Groups] = []
    trainer = Lengths(
        model=model,
        reward_funcs=TASK.reward,
        args=GRPOConfig(
            output_dir=str(out),
            per_device_train_batch_size=PROMPTS * GROUP,
            num_generations=GROUP,
            max_completion_length=300,
            max_steps=steps,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
            learning_rate=1e-3,
            beta=0.0,
            seed=7,
            **environment_options(TASK),
        ),
        train_dataset=Dataset.from_list(TASK.train_records(60, 0)),
        processing_class=tokenizer,
        curriculum=curriculum or Traced(seed=3, reward_spec=rw.RewardSpec(solved_at=0.99)),
        group_observers=[seen.append],
        environment_factory=environment,
        **more,
    )
    return trainer, seen


def replayed(environment: Conversation, row: dict[str, Any], messages: list[dict[str, Any]]) -> float | None:
    """The reward of a rollout's tool calls, made again in a fresh environment of the row that the ticket named."""
    environment.reset(**row)
    for message in messages:
        for call in message.get("tool_calls") or []:
            try:
                getattr(environment, call["function"]["name"])(**call["function"]["arguments"])
            except (ToolError, TypeError, AttributeError):
                continue
    return environment.reward


@pytest.mark.slow
@pytest.mark.parametrize("gated", [False, True])
def test_trajectory_rewards_are_told_for_the_prompts_that_were_asked(policy: Path, tmp_path: Path, gated: bool) -> None:
    gate = make_dynamic_sampling("mixed", max_rounds=2) if gated else None
    trainer, seen = trainer_of(policy, tmp_path, gate=gate)
    before = torch.cat([p.detach().flatten().clone() for p in trainer.model.parameters()])
    trainer.train()
    told = [what for kind, what in trainer.curriculum.trace if kind == "tell"]
    means = [reward for groups in seen for reward in groups.rewards.mean(axis=1)]
    assert sorted(reward for one in told for reward in one) == pytest.approx(sorted(means))
    rewards = np.concatenate([groups.rewards for groups in seen])
    assert len(rewards) >= 3 * PROMPTS
    assert rewards.min() >= 0.0
    assert rewards.max() <= 1.0
    assert set(np.unique(rewards)) - {0.0, 1.0}, "no partial success: the reward is not continuous"
    assert (rewards.std(axis=1) > 0).sum() >= 3, "no group told has any variance"
    for groups in seen:
        for ticket, row, texts, own in zip(groups.tickets, groups.rows, groups.texts, groups.rewards, strict=True):
            assert row["id"] == ticket.prompt_id
            assert [replayed(BoxesEnvironment(), row, messages) for messages in texts] == pytest.approx(own.tolist())
    calls = [m for groups in seen for texts in groups.texts for told in texts for m in told if m["role"] == "tool"]
    assert len(calls) > 3 * PROMPTS * GROUP
    after = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
    assert not torch.equal(before, after)


@pytest.mark.slow
def test_tool_results_are_no_tokens_of_the_policys(policy: Path, tmp_path: Path) -> None:
    """TRL logs the mean number of tokens that were generated; ours, from its mask, is the same."""
    trainer, _ = trainer_of(policy, tmp_path, steps=1)
    trainer.train()
    logged = next(entry for entry in trainer.state.log_history if "completions/mean_length" in entry)
    assert np.mean(trainer.own) == pytest.approx(logged["completions/mean_length"])
    assert sum(trainer.own) < sum(trainer.whole)
    tokens = trainer.compute.take()
    assert tokens["generated"] == sum(trainer.own)
    assert tokens["trained"] == tokens["read"] + tokens["generated"]


@pytest.mark.slow
def test_metis_judges_conversations_by_their_continuous_rewards(policy: Path, tmp_path: Path) -> None:
    """The tiny policy can't judge in words: any answer is read as a number, and learnt from all the same."""
    spec = rw.RewardSpec(solved_at=0.99)
    metis = ToyMETIS(seed=3, reward_spec=spec, candidate_multiplier=2, format=LetterFormat(), judge_weight=0.5)
    trainer, seen = trainer_of(policy, tmp_path, curriculum=metis)
    trainer.train()
    realised = {t.prompt_id: float(own.var()) for g in seen for t, own in zip(g.tickets, g.rewards, strict=True)}
    assert len(metis.taught) == sum("judged" in t.lane for g in seen for t in g.tickets) > PROMPTS
    assert {round(lesson.variance, 9) for lesson in metis.taught} <= {round(v, 9) for v in realised.values()}
    assert {lesson.variance for lesson in metis.taught} - {k * (GROUP - k) / GROUP**2 for k in range(GROUP + 1)}
    assert all(groups.judging["questions"] == 2 * PROMPTS for groups in seen)
    assert all("judge/loss" in entry for entry in trainer.state.log_history if "loss" in entry)
    quoted = metis.asked_contexts[-1]
    assert "system" not in quoted
    assert metis.policy.memory[0].text in quoted


class Unsure(BoxesEnvironment):
    """Can't say what a turn is worth if the request is to empty a box."""

    def _credit(self, turn: int) -> float | None:
        credit = super()._credit(turn)
        return None if any(order.verb == "empty" for order in self._scenario.turns[turn]) else credit


@pytest.mark.slow
def test_a_rollout_that_cannot_be_scored_is_told_as_failed(policy: Path, tmp_path: Path) -> None:
    trainer, seen = trainer_of(policy, tmp_path, environment=Unsure, steps=2)
    trainer.train()
    rewards = np.concatenate([groups.rewards for groups in seen])
    assert 0 < np.isnan(rewards).sum() < rewards.size
    assert trainer.curriculum.metrics()["failed"] == np.isnan(rewards).sum()


def test_only_grpo_with_a_template_that_knows_tools_will_do() -> None:
    tokenizer = phrase_tokenizer(["hello"], max_length=64)
    arguments = environment_arguments(TASK, trainer="grpo", tokenizer=tokenizer)
    assert isinstance(arguments["environment_factory"](), BoxesEnvironment)
    assert environment_arguments(Countdown(), trainer="rloo", tokenizer=toy_tokenizer()) == {}
    with pytest.raises(ConfigError, match="'boxes' calls tools, which TRL's 'rloo' trainer can't"):
        environment_arguments(TASK, trainer="rloo", tokenizer=tokenizer)
    with pytest.raises(ConfigError, match="renders no tool calls"):
        environment_arguments(TASK, trainer="grpo", tokenizer=toy_tokenizer())
    assert environment_options(TASK) == {"max_tool_calling_iterations": 12}  # 2 turns x (2 orders x 2 + 2)


def test_generated_lengths_leave_tool_results_out() -> None:
    """Of 6 tokens two are a tool's; of 4 one."""
    completions = [[9] * 6, [9] * 4]
    assert generated_lengths(completions, [[1, 0, 0, 1, 1, 1], [1, 1, 0, 1]]) == [4, 3]
    assert generated_lengths(completions, None) == [6, 4]


@pytest.mark.parametrize("masked", [False, True])
def test_a_truncated_rollout_has_the_tokens_that_were_generated(tmp_path: Path, masked: bool) -> None:
    """TRL's mask of tool results is 0 on all of it, padding included, where truncated completions are masked."""
    written = [3, 5, 2, 4] * 4

    def rollouts(prompts: list[str], trainer: Any) -> dict[str, Any]:
        ids = [[5] * n + [6] for n in written]  # the last token is the environment's; none ends the text
        return {
            "prompt_ids": trainer.processing_class(text=prompts)["input_ids"],
            "completion_ids": ids,
            "logprobs": [[-1.0] * len(own) for own in ids],
            "env_mask": [[1] * n + [0] for n in written],
        }

    seen: list[Groups] = []
    trainer = make_trainer(
        tmp_path,
        max_steps=1,
        mask_truncated_completions=masked,
        extra={"rollout_func": rollouts, "group_observers": [seen.append]},
    )
    trainer.train()
    assert seen[0].lengths.ravel().tolist() == written
    assert seen[0].spent() == (len(written), sum(written))


def test_labels_cover_what_the_policy_says_and_nothing_else() -> None:
    demo = TASK.demonstrations(1, 0)[0]
    tools = tools_of(TASK.environment())
    tokenizer = phrase_tokenizer([], max_length=512)
    whole = tokenizer.apply_chat_template(demo["prompt"] + demo["completion"], tools=tools, tokenize=False)
    tokenizer = phrase_tokenizer([whole], max_length=512)
    rows = conversation_rows(tokenizer, [demo], tools, max_length=512)
    assert tokenizer.decode(rows["input_ids"][0]) == whole
    said = tokenizer.decode([label for label in rows["labels"][0] if label >= 0])
    assert said.count("<tool_call>") == sum(len(m.get("tool_calls", [])) for m in demo["completion"])
    assert "tool_response" not in said
    assert "You keep" not in said


def _bfcl_installed() -> bool:
    try:
        return metadata.version("bfcl-eval") == "2026.3.23"
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not _bfcl_installed(), reason="bfcl-eval 2026.3.23, whose data these are, is absent")
def test_bfcl_through_the_tool_loop(tmp_path: Path) -> None:
    """A tiny policy learns four references by heart, and its rollouts earn what their calls, made again, are worth."""
    from transformers import Olmo2Config, Olmo2ForCausalLM

    from rollwise.tasks import BFCL
    from rollwise.tasks.bfcl.environment import BFCLEnvironment

    task = BFCL(categories=("base",))
    rows = sorted(task.train_records(200, 0), key=lambda row: row["difficulty"])[:4]
    demos = [demo for demo in task.demonstrations(200, 0) if demo["prompt"] in [row["prompt"] for row in rows]]
    tools = tools_of(task.environment())
    length = 2048
    tokenizer = phrase_tokenizer([], max_length=length)
    texts = [
        tokenizer.apply_chat_template(demo["prompt"] + demo["completion"], tools=tools, tokenize=False)
        for demo in demos
    ]
    tokenizer = phrase_tokenizer(texts, max_length=length)
    torch.manual_seed(0)
    model = Olmo2ForCausalLM(
        Olmo2Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=length,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    config = replace(SMALL, sft_steps=60, sft_batch_size=4, learning_rate=1e-2)
    learnt = conversation_rows(tokenizer, demos, tools, max_length=length)
    warm_start_rows(model, tokenizer, {k: v * 60 for k, v in learnt.items()}, config=config)
    seen: list[Groups] = []
    trainer = CurriculumGRPOTrainer(
        model=model,
        reward_funcs=task.reward,
        args=GRPOConfig(
            output_dir=str(tmp_path),
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=600,
            max_steps=1,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            **environment_options(task),
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        curriculum=rw.PrioritizedReplay(seed=0),
        group_observers=[seen.append],
        environment_factory=task.environment,
    )
    trainer.train()
    assert seen[0].rewards.max() > 0.0
    for row, group, own in zip(seen[0].rows, seen[0].texts, seen[0].rewards, strict=True):
        assert [replayed(BFCLEnvironment(), row, messages) for messages in group] == pytest.approx(own.tolist())
