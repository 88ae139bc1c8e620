"""Rewards of which half the prompts have no contrast, and trainers that note what they train on."""

from typing import Any

import torch

from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer


def half_solved(completion_ids: list[list[int]], threshold: list[int], **_: Any) -> list[float]:
    """Half of the toy's prompts are always solved; the others every other time, at random."""
    return [1.0 if k < 3 else float(sum(ids) % 2) for ids, k in zip(completion_ids, threshold, strict=True)]


class _Notes:
    trained: list[dict[str, torch.Tensor]]

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        self.__dict__.setdefault("trained", []).append(output)
        return output


class NotingGRPO(_Notes, CurriculumGRPOTrainer):
    pass


class NotingRLOO(_Notes, CurriculumRLOOTrainer):
    pass


def assert_probabilities_stay_with_their_tokens(trainer: Any, batch: dict[str, torch.Tensor]) -> None:
    """Computed anew on the whole batch, old and reference log-probabilities are those that the trainer trains with."""
    ids, mask = (torch.cat([batch[f"prompt_{n}"], batch[f"completion_{n}"]], dim=1) for n in ("ids", "mask"))
    width = batch["completion_ids"].shape[1]
    with torch.no_grad():
        now, *_ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, mask, width)
    keep = batch["completion_mask"].bool()
    for name in ("old_per_token_logps", "ref_per_token_logps"):
        assert torch.allclose(batch[name][keep], now[keep], atol=1e-5)
