"""Which model a success head reads as a judge: one in a folder, or the live policy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollwise.inference.head.head import SuccessHead
from rollwise.models.loading import load_policy

if TYPE_CHECKING:
    from rollwise.inference.beliefs import Beliefs

logger = logging.getLogger(__name__)


@dataclass
class JudgeSource:
    """Where the model is; shared by a judge's copies, so that one that is loaded is loaded once.

    Attributes:
        folder: A folder or hub id.
        live: The model and tokenizer of a trainer.
        beliefs: The head on the model, once it was needed.
    """

    folder: str | None = None
    live: tuple[Any, Any] | None = None
    beliefs: Beliefs | None = None

    def following(self, head: SuccessHead, model: Any, tokenizer: Any, *, sharded: bool) -> JudgeSource:
        """The live policy as a source; this one, with a warning, if its weights are sharded.

        Raises:
            ConfigError: the head belongs to another model or tokenizer.
        """
        if sharded:
            logger.warning(
                "the policy's weights are sharded: the success head reads a copy of the policy as training began, from "
                "%s, not the live one",
                self.folder,
            )
            return self
        base = getattr(model, "get_base_model", None)  # of PEFT: the model with its adapters in place
        live = model if base is None else base()
        head.check(live, tokenizer)
        return JudgeSource(folder=self.folder, live=(live, tokenizer))

    def beliefs_of(
        self,
        head: SuccessHead,
        *,
        probes: int,
        batch_size: int,
        probing: Mapping[str, Any],
        loading: Mapping[str, str | None],
    ) -> Beliefs:
        """The head on the model, which is loaded when it is first needed.

        Args:
            head: The head.
            probes: Partial rollouts of each prompt.
            batch_size: Prompts of one forward pass, without probes.
            probing: Options of `DecodingOptions`.
            loading: `dtype` and `device` of a model that is loaded; None for the default.
        """
        if self.beliefs is None:
            from rollwise.inference.beliefs import Beliefs
            from rollwise.inference.decoding.decoder import DecodingOptions

            model, tokenizer = self.live or _load(str(self.folder), **loading)
            options = DecodingOptions(**probing)
            self.beliefs = Beliefs(model, tokenizer, head, probes=probes, batch_size=batch_size, probing=options)
        return self.beliefs


def _load(folder: str, *, dtype: str | None, device: str | None) -> tuple[Any, Any]:
    import torch

    model, tokenizer = load_policy(folder, dtype=dtype)
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    place: Any = device or accelerator or "cpu"
    loaded: Any = model
    return loaded.to(place).requires_grad_(False).eval(), tokenizer
