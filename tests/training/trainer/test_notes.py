"""What TRL's trainers tell a curriculum besides outcomes: tokens seen, and evaluation scores."""

from pathlib import Path
from typing import Any

import pytest
from toys import make_trainer, toy_dataset

import rollwise as rw


class Noting(rw.BOTS):
    noted: list[float]

    def note_score(self, score: float) -> None:
        self.noted = [*getattr(self, "noted", []), score]
        super().note_score(score)


def test_tokens_and_scores_are_told(tmp_path: Path) -> None:
    forgetting: Any = {"points": [[0, 0.5], [10**9, 0.1]], "by": "tokens"}
    curriculum = Noting(forgetting=forgetting, seed=0)
    trainer = make_trainer(tmp_path, curriculum=curriculum, max_steps=2, eval_dataset=toy_dataset(4))
    trainer.train()
    seen = trainer.curriculum.tokens
    assert 0 < seen < trainer.state.num_input_tokens_seen  # as of the last generation
    assert trainer.curriculum.metrics()["forgetting"] == 0.5 - 0.4 * seen / 10**9
    score = trainer.evaluate()["eval_reward"]
    assert len(trainer.curriculum.noted) == 1
    assert 0 <= trainer.curriculum.noted[0] <= 1
    assert isinstance(score, float)


def test_a_curriculum_that_follows_a_score_which_never_comes_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lanes: Any = {"a": (1, rw.BOTS(adaptive="score")), "b": (1, rw.Uniform())}
    make_trainer(tmp_path, curriculum=rw.Mixture(lanes=lanes))
    assert "Mixture follows the score of evaluations, and eval_strategy is 'no'" in caplog.text
    caplog.clear()
    make_trainer(tmp_path, curriculum=rw.BOTS(adaptive=True))
    make_trainer(tmp_path, curriculum=lanes["a"][1], eval_strategy="steps", eval_dataset=toy_dataset(4))
    assert "follows the score" not in caplog.text
