"""The agent loop manager that lets METIS ask the live policy."""

from __future__ import annotations

from typing import Any

from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ

from rollwise.engines.verl.shared import SHARED


class JudgingManager(AgentLoopManagerTQ):
    """verl's agent loop manager, which also hands its client of the rollout servers to the data set."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        SHARED.client = kwargs.get("llm_client", args[1] if len(args) > 1 else None)
