"""TRL's asynchronous loop without vLLM: completions are made up. Imported by the spawned worker too."""

from __future__ import annotations

import asyncio
from typing import Any

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl.experimental.async_grpo.async_rollout_worker import RolloutGroup, TrainingSequence

import rollwise as rw
from rollwise.engines import CurriculumService
from rollwise.engines.trl_async import CurriculumRolloutLoop, CurriculumRolloutWorker

GROUP = 4
DATASET = Dataset.from_list([{"prompt": [{"role": "user", "content": f"task {i}"}], "level": i % 5} for i in range(40)])


def reward(completions: list[Any], level: list[int], **_: Any) -> list[float | None]:
    """Of the four rollouts, as many are solved as the prompt's level says; None for a text that can't be scored."""
    texts = [completion[0]["content"] for completion in completions]
    return [None if text == "?" else float(int(text) < k) for text, k in zip(texts, level, strict=True)]


def make_service(method: str = "recommended", n: int = 40) -> CurriculumService:
    curriculum = rw.make_curriculum(method, seed=0)
    curriculum.bind(rw.PromptPool.from_records([DATASET[i] for i in range(n)]))
    return CurriculumService(curriculum)


def tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    made.response_template = ""  # TRL knows none for it
    return made


def options(**given: Any) -> dict[str, Any]:
    made = {"model_name": "none", "dataset": DATASET, "reward_funcs": [reward], "processing_class": tokenizer()}
    return {**made, "eos_token_ids": [1], "num_generations": GROUP, "max_inflight_tasks": 8, **given}


def group_of(group_id: int, row: dict[str, Any], texts: list[str], rows: list[int] | None = None) -> RolloutGroup:
    """A group as TRL's generation leaves it; conversation i has rows[i] training rows, by default one each."""
    n = len(texts)
    return RolloutGroup(
        prompts=[row["prompt"]] * n,
        reward_kwargs={"level": [row["level"]] * n},
        completions=[[{"role": "assistant", "content": text}] for text in texts],
        completions_ids=[[5]] * n,
        completions_sequences=[
            [TrainingSequence([i, 5, j], [0, 1, 1], [0.0, -1.0, -1.0], 0) for j in range(many)]
            for i, many in enumerate(rows or [1] * n)
        ],
        tool_call_counts=[0] * n,
        tool_failure_counts=[0] * n,
        model_version=3,
        group_id=group_id,
        env_rewards=[None] * n,
        rollout_rewards=[None] * n,
    )


class MadeUpLoop(CurriculumRolloutLoop):
    """Needs no server: the n-th completion of a prompt is the number n."""

    async def _run_loops(self, stop_event: asyncio.Event) -> None:
        await asyncio.gather(self._generate_loop(stop_event=stop_event), self._score_loop(stop_event=stop_event))

    async def _generate_one(self, prompt: Any, tool_dict: Any, tools: Any, group_id: int = 0) -> Any:
        number = self.__dict__.setdefault("made", {}).setdefault(group_id, iter(range(GROUP)))
        completion = [{"role": "assistant", "content": str(next(number))}]
        return completion, [5], [TrainingSequence([4, 5], [0, 1], [0.0, -1.0], 0)], 0, 0, None


class MadeUpWorker(CurriculumRolloutWorker):
    """Spawns that loop."""

    _loop_cls = MadeUpLoop
