"""Where a judge that reads a model finds it: in a folder, or live in a trainer."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from rollwise.errors import ConfigError
from rollwise.judges.base import Judge
from rollwise.models.loading import default_device, load_policy, without_adapters
from rollwise.pool import PromptPool

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


class PolicyJudge(Judge):
    """A base of judges that read a model; the constructor calls `_reads`, and `bind` the one here.

    Attributes:
        reader: What it is called in messages.
        costs: Of reading, since they were taken last.
    """

    reader: ClassVar[str]
    costs: dict[str, float]

    def _reads(self, model: str | Path | None, dtype: str | None, device: str | None) -> None:
        """Read `model`, or the policy if it is None; `dtype` and `device` are of a model that is loaded here."""
        self.model, self.dtype, self.device = None if model is None else str(model), dtype, device
        self._source = PolicySource(folder=self.model)
        self.costs = {}

    def _load(self) -> tuple[Any, Any]:
        """The model and its tokenizer."""
        return self._source.load(dtype=self.dtype, device=self.device)

    @property
    def reads_policy(self) -> bool:
        return self.model is None

    def starting_from(self, source: str) -> Self:
        return self if self.model is not None else self._reading(PolicySource(folder=source))

    def follow(self, model: Any, tokenizer: Any, *, sharded: bool = False) -> Self:
        if self.model is not None:
            return self
        source = self._source.lent(model, tokenizer, sharded=sharded, reader=self.reader)
        return self if source is self._source else self._reading(source)

    def _reading(self, source: PolicySource) -> Self:
        made = copy.copy(self)
        made._source = source
        return made

    def bind(self, pool: PromptPool, seed: int) -> None:
        if self._source.folder is None and self._source.live is None:
            raise ConfigError(
                f"{self.reader} has no model to read: give it model=... (judge_options: {{model: ...}}), a folder or a "
                "hub id, call curriculum.follow(model, tokenizer) before you bind it, or leave it to a trainer. Where "
                "there is no policy, as in a simulation, give a judge of your own"
            )
        self.costs = {}

    def take_costs(self) -> dict[str, float]:
        taken, self.costs = self.costs, {}
        return taken
