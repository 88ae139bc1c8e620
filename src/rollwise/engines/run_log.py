"""Writes the folder of a run inside an engine, so that `rollwise report`, `watch` and `compare` read it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.runs.folder import RunFolder
from rollwise.runs.log_ends import Totals
from rollwise.runs.names import SCRIPT
from rollwise.runs.pass_at_k import pass_at_k
from rollwise.tickets import Evidence, RewardSpec
from rollwise.tickets.ticket import Ticket, line_of
from rollwise.training.recording.facts import changed_options, plain, versions
from rollwise.training.recording.prompt_log import PromptLog


@dataclass(frozen=True, slots=True)
class LoggedGroup:
    """The rollouts of one ticket.

    Attributes:
        ticket: the ticket.
        rewards: (k,) raw rewards.
        tokens: completion lengths, of the k and then of failed ones that came back; empty if the engine tells none.
        texts: completions, likewise; empty if they are not kept.
        failed: how many more rollouts gave no reward.
        fate: "trained", or why the group was not: "filtered", "stale", "surplus", "failed".
    """

    ticket: Ticket
    rewards: Sequence[float]
    tokens: Sequence[int] = ()
    texts: Sequence[str] = ()
    failed: int = 0
    fate: str = "trained"

    def line(self, step: int) -> dict[str, Any]:
        """The line of `rollouts.jsonl`."""
        ticket, trained = self.ticket, self.fate == "trained"
        return {
            **line_of(ticket, step=step, trained=trained),
            "rewards": [*self.rewards, *[float("nan")] * self.failed],
            "tokens": [*self.tokens, *[0] * (len(self.rewards) + self.failed - len(self.tokens))],
            "prompt": ticket.prompt,
            "texts": [*self.texts, *[""] * (len(self.rewards) + self.failed - len(self.texts))],
            "admitted": trained,
            "fate": self.fate,
            **({} if ticket.step == step else {"asked_at": ticket.step}),
        }


class RunLog:
    """One line of `rollouts.jsonl` a group, one of `metrics.jsonl` a step, and the files that say what the run is.

    Args:
        folder: where to write.
        curriculum: a bound curriculum.
        facts: more for `config.yaml`: `engine`, `model`, `steps`, `prompts_per_step`, `group_size`, `seed`, ...
    """

    def __init__(self, folder: str | os.PathLike[str], curriculum: Curriculum, facts: Mapping[str, Any]) -> None:
        self.folder = RunFolder(folder)
        self.curriculum, self.facts = curriculum, dict(facts)
        self.prompts = PromptLog(self.folder)
        self.totals = Totals()
        self._rewards: RewardSpec | None = None
        self._since = 0.0
        self._sums: dict[str, float] = {}

    def begin(self, step: int) -> None:
        """Start a new run, or go on after `step`: later lines are dropped, and logs of another run are put aside."""
        if step == 0 and self.folder.takes_script:
            self.folder.put_aside()
        self.totals = self.folder.roll_back(step if step else -1)
        self.prompts.resume()
        if self.folder.takes_script:
            self._describe()
        self._rewards, self._sums, self._since = None, {}, time.perf_counter()
        self._write_rewards()

    def _describe(self) -> None:
        """Write `config.yaml`, which a command that started the engine has written already."""
        curriculum = self.curriculum
        self.folder.write_config(
            {
                "kind": SCRIPT,
                "curriculum": curriculum.method_name or type(curriculum).__name__,
                "curriculum_options": plain(changed_options(curriculum)),
                "curriculum_resolved": plain(curriculum.options),
                "gate": "none",
                "num_prompts": len(curriculum.pool),
                **plain({name: value for name, value in self.facts.items() if value is not None}),
                "versions": versions(),
            }
        )

    def add(self, step: int, groups: Sequence[LoggedGroup], evidence: Evidence) -> None:
        """Write groups that were told, and add them to the step's line."""
        self._write_rewards()
        self.prompts.add(step, [group.ticket.prompt_id for group in groups], self.curriculum.pool)
        lines = [group.line(step) | self._category(group.ticket.prompt_id) for group in groups]
        self.folder.append(self.folder.rollouts, lines)
        rollouts = sum(len(group.rewards) + group.failed for group in groups)
        tokens = sum(sum(group.tokens) for group in groups)
        self.totals.rollouts += rollouts
        self.totals.tokens += tokens
        counts = {
            "judged": evidence.judged.sum(),
            "mixed": evidence.mixed.sum(),
            "all_good": evidence.all_good.sum(),
            "all_bad": evidence.all_bad.sum(),
            "scored": evidence.count.sum(),
            "solved": np.nansum(evidence.solved * evidence.count),
            "reward": sum(sum(group.rewards) for group in groups),
            "rewards": sum(len(group.rewards) for group in groups),
            "tokens": tokens,
            "rollouts": rollouts,
        }
        for name, value in counts.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(value)

    def end_step(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the line of `step`, with `numbers` besides the groups' means."""
        now = time.perf_counter()
        self.totals.wall_s, self._since = self.totals.wall_s + now - self._since, now
        sums, self._sums = self._sums, {}
        line = self._line(step)
        if sums.get("judged"):
            line |= {f"frac_{kind}": sums[kind] / sums["judged"] for kind in ("mixed", "all_good", "all_bad")}
            line |= {"success": sums["solved"] / sums["scored"], "completion_length": sums["tokens"] / sums["rollouts"]}
        if sums.get("rewards"):
            line["reward"] = sums["reward"] / sums["rewards"]
        line |= {f"curriculum/{name}": value for name, value in self.curriculum.metrics().items()}
        self.folder.append(self.folder.metrics, [line | dict(numbers)])

    def evaluated(self, step: int, groups: Sequence[Sequence[float]]) -> None:
        """Write scores of held-out prompts, each with its (n,) raw rewards, beside the line of `step`."""
        solved = [[reward >= self.curriculum.reward_spec.threshold for reward in group] for group in groups]
        n = min(len(group) for group in groups)
        scores = {
            "eval/reward": np.mean([np.mean(group) for group in groups]),
            "eval/pass@1": np.mean([np.mean(group) for group in solved]),
            f"eval/pass@{n}": pass_at_k(list(map(len, solved)), list(map(sum, solved)), n).mean(),
        }
        self.folder.append(self.folder.metrics, [self._line(step) | {k: float(v) for k, v in scores.items()}])

    def _category(self, prompt_id: str) -> dict[str, str]:
        pool = self.curriculum.pool
        if not pool.has_categories or prompt_id not in pool:
            return {}
        value = pool.columns["category"][pool.slot(prompt_id)]
        return {"category": " | ".join(map(str, value if isinstance(value, tuple | list) else [value]))}

    def _line(self, step: int) -> dict[str, Any]:
        spent = {name: getattr(self.totals, name) for name in ("wall_s", "rollouts", "tokens")}
        return {"step": step, "time": time.time(), **spent}

    def sync(self) -> None:
        """Bring the logs to the disk, before a checkpoint of the engine counts."""
        self.folder.sync()

    def _write_rewards(self) -> None:
        if self.curriculum.reward_spec != self._rewards:
            self._rewards = self.curriculum.reward_spec
            self.folder.write_rewards(self._rewards)
