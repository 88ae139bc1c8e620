"""Where a judge that reads a model finds it: in a folder, or live in a trainer."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rollwise.models.loading import default_device, load_policy, without_adapters

logger = logging.getLogger(__name__)


@dataclass
class PolicySource:
    """Where the model is; shared by a judge's copies, so that one that is loaded is loaded once.

    Attributes:
        folder: A folder or hub id.
        live: The model and tokenizer of a trainer.
        loaded: The folder's, once they were needed.
    """

    folder: str | None = None
    live: tuple[Any, Any] | None = None
    loaded: tuple[Any, Any] | None = field(default=None, init=False)

    def lent(self, model: Any, tokenizer: Any, *, sharded: bool, reader: str) -> Self:
        """A source of the live policy; this one, with a warning, if its weights are sharded.

        Args:
            model: The policy, unwrapped.
            tokenizer: Its own.
            sharded: Its weights lie in parts on several devices.
            reader: Who reads it, for the warning.
        """
        if sharded:
            logger.warning(
                "the policy's weights are sharded: %s reads a copy of the policy as training began, from %s, not the "
                "live one",
                *(reader, self.folder),
            )
            return self
        return replace(self, live=(without_adapters(model), tokenizer))

    def load(self, *, dtype: str | None, device: str | None) -> tuple[Any, Any]:
        """The live model and its tokenizer; else those of the folder, on the accelerator if there is one."""
        if self.live is not None:
            return self.live
        if self.loaded is None:
            model: Any
            model, tokenizer = load_policy(str(self.folder), dtype=dtype)
            self.loaded = model.to(device or default_device()).requires_grad_(False).eval(), tokenizer
        return self.loaded
