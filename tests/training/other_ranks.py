"""Trains on two processes and goes on with one, two and three; what the curriculum was asked goes to JSON files."""

from pathlib import Path
from typing import Any

from probing import half_solved
from ranks import digest, tell
from toys import PROMPTS, Traced, make_trainer, toy_dataset

import rollwise as rw

GROUP, SAVED = 3, 2


class TracedSPEED(rw.SPEED):
    """Notes every probe and ask."""

    def build(self) -> None:
        super().build()
        self.trace: list[tuple[str, Any]] = []

    def probe(self, n: int, **kwargs: Any) -> list[rw.Ticket]:
        return self._note("probe", super().probe(n, **kwargs))

    def ask(self, n: int, **kwargs: Any) -> list[rw.Ticket]:
        return self._note("ask", super().ask(n, **kwargs))

    def _note(self, kind: str, tickets: list[rw.Ticket]) -> list[rw.Ticket]:
        self.trace.append((kind, [ticket.prompt_id for ticket in tickets]))
        return tickets


CURRICULA = {
    "asking": lambda: Traced(seed=3, retest_every=2),
    "screening": lambda: TracedSPEED(seed=3, screen_rollouts=2, screen=10, ready=5, screen_limit=3),
}


def train(out: Path, name: str, processes: int, resume: bool) -> Any:
    trainer = make_trainer(
        out / (f"on-{processes}" if resume else "straight"),
        curriculum=CURRICULA[name](),
        reward=half_solved,
        dataset=toy_dataset(48),
        eval_dataset=toy_dataset(6),
        num_generations=GROUP,
        per_device_train_batch_size=PROMPTS * GROUP // processes,
        per_device_eval_batch_size=GROUP,
        eval_strategy="steps",
        eval_steps=2,
        max_steps=4,
        save_strategy="steps",
        save_steps=SAVED,
    )
    trainer.train(resume_from_checkpoint=f"{out}/straight/checkpoint-{SAVED}" if resume else None)
    mine = {
        "trace": getattr(trainer.curriculum, "trace", []),  # rank 0 alone has a bound curriculum
        "kept": sorted(trainer._screened.groups),
        "parameters": digest(trainer),
        "scores": [line["eval_pass@1"] for line in trainer.state.log_history if "eval_pass@1" in line],
    }
    tell(trainer, mine, out / (f"on-{processes}.json" if resume else "straight.json"))
    return trainer
