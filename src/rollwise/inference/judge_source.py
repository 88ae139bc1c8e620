"""Which model a success head reads as a judge: one in a folder, or the live policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rollwise.inference.head.head import SuccessHead
from rollwise.models.reading.policy_source import PolicySource

if TYPE_CHECKING:
    from rollwise.inference.beliefs import Beliefs


@dataclass
class JudgeSource(PolicySource):
    """A source of the model with the head on it.

    Attributes:
        beliefs: The head on the model, once it was needed.
    """

    beliefs: Beliefs | None = field(default=None, init=False)

    def following(self, head: SuccessHead, model: Any, tokenizer: Any, *, sharded: bool) -> JudgeSource:
        """The live policy as a source; this one, with a warning, if its weights are sharded.

        Raises:
            ConfigError: the head belongs to another model or tokenizer.
        """
        source = self.lent(model, tokenizer, sharded=sharded, reader="the success head")
        if source is not self and source.live is not None:
            head.check(*source.live)
        return source

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

            model, tokenizer = self.load(dtype=loading["dtype"], device=loading["device"])
            options = DecodingOptions(**probing)
            self.beliefs = Beliefs(model, tokenizer, head, probes=probes, batch_size=batch_size, probing=options)
        return self.beliefs
