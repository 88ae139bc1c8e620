"""Completions of a TRL trainer that end at stop texts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from rollwise.errors import ConfigError
from rollwise.models.decoding.stop_texts import StopTexts
from rollwise.training.generation.isolation import attributes_set
from rollwise.training.generation.trl_trainer import TrlTrainer


def check_stop(args: Any) -> None:
    """Refuse options of a trainer, or of its arguments, that do not go with stop texts.

    Raises:
        ConfigError: there is one.
    """
    if args.mask_truncated_completions:
        raise ConfigError(
            "mask_truncated_completions takes completions that end with a stop text for truncated ones; leave it "
            "out, or give --stop []"
        )
    if getattr(args, "use_transformers_continuous_batching", False):
        raise ConfigError("use_transformers_continuous_batching knows no stop texts; leave it out, or give --stop []")


class StopMixin(TrlTrainer):
    """Ends completions at stop texts, which TRL knows for vLLM alone."""

    _stops: Any
    """`StopTexts`; None without any."""

    def _stop_at(self, texts: Sequence[str]) -> None:
        """From now on completions end with these texts; with none of them, with the end of text alone.

        Raises:
            ConfigError: an option of the trainer that does not go with stop texts.
        """
        self._stops = StopTexts(self._tokenizer, texts) if texts else None
        if self._stops is None:
            return
        check_stop(self.args)

    def _generate(self, prompts: Any) -> Any:
        """TRL's, by turns that end at stop texts; judgments, which it does not make, end as their format says."""
        if self._stops is None:
            return super()._generate(prompts)
        with self._stopped_vllm() if getattr(self, "use_vllm", False) else self._stopped_turns():
            output = super()._generate(prompts)
        self._count_cut_off(output[1])
        return output

    def _stopped_vllm(self) -> AbstractContextManager[None]:
        engine, own = self.vllm_generation, {"stop": list(self._stops.texts), "include_stop_str_in_output": True}
        return attributes_set(engine, generation_kwargs=own | engine.generation_kwargs)

    def _stopped_turns(self) -> AbstractContextManager[None]:
        stops, plain = self._stops, self._generate_single_turn

        def single_turn(*args: Any, **options: Any) -> Any:
            with stops.ending(self.accelerator.unwrap_model(self.model_wrapped)):
                made = plain(*args, **options)
            if isinstance(made, tuple):  # GRPO's, with log-probabilities that only vLLM has
                return ([stops.cut(row) for row in made[0]], *made[1:])
            return [stops.cut(row) for row in made]

        return attributes_set(self, _generate_single_turn=single_turn)

    def _count_cut_off(self, completions: Sequence[Sequence[int]]) -> None:
        """Correct the share of completions that were cut off: TRL looks for the end of text alone."""
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        cut = [row[-1] not in ends and not self._stops.found(row) for row in completions]
        shares = self.accelerator.gather(torch.tensor(cut, dtype=torch.float32, device=self.accelerator.device))
        mode = "train" if self.model.training else "eval"
        self._metrics[mode]["completions/clipped_ratio"][-1] = float(shares.mean())
