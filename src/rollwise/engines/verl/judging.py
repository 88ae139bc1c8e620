"""METIS inside verl: the live policy judges the candidates before each ask. Its joint loss is not trained there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError
from rollwise.judges import Answer
from rollwise.models.question_encoder import QuestionEncoder


def judge(
    curriculum: Curriculum,
    n: int,
    *,
    tokenizer: Any,
    client: Any,
    window: int,
    sampling: Mapping[str, Any] | None = None,
    template_options: Mapping[str, Any] | None = None,
) -> None:
    """Have the live policy answer what the curriculum wants to know before `ask(n)`.

    Args:
        curriculum: one that wants answers.
        n: how many prompts will be asked.
        tokenizer: the policy's.
        client: verl's client of the rollout servers.
        window: tokens of the servers' context.
        sampling: the rollouts' `temperature`, `top_p` and `top_k`; the first two are 1 where they are left out.
        template_options: further arguments of the chat template, as for the rollouts.

    Raises:
        ConfigError: there is no client, or the context is too short for any question.
    """
    questions = curriculum.consult(n)
    if not questions:
        return
    if client is None:
        raise ConfigError(
            "no client of the rollout servers; set "
            "+actor_rollout_ref.rollout.agent.agent_loop_manager_class=rollwise.engines.verl.JudgingManager"
        )
    longest = questions[0].format.max_tokens
    encoder = QuestionEncoder(tokenizer, window=window - longest, template_options=template_options)
    drawn = {"temperature": 1.0, "top_p": 1.0, **(sampling or {}), "max_tokens": longest}
    encoded = [encoder.encode(question) for question in questions]
    if not any(one.ids for one in encoded):
        raise ConfigError(
            f"none of {len(questions)} questions fits the context of {window} tokens; raise "
            "actor_rollout_ref.rollout.max_model_len (or data.max_prompt_length)"
        )

    async def answer(ids: list[int]) -> str | None:
        if not ids:
            return None
        out = await client.generate(uuid.uuid4().hex, prompt_ids=ids, sampling_params=dict(drawn))
        return str(tokenizer.decode(out.token_ids, skip_special_tokens=True))

    async def answer_all() -> list[str | None]:
        return list(await asyncio.gather(*[answer(one.ids) for one in encoded]))

    rows = zip(questions, asyncio.run(answer_all()), encoded, strict=True)
    curriculum.advise(Answer(question.id, text, one.exemplars) for question, text, one in rows)
