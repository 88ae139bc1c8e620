"""Training-time abort of doomed rollouts in TRL's RLOO trainer, without bias. Experimental, and off by default.

Rollouts are generated to the abort point, V is read there by the live policy's hidden states, the doomed ones are put
to the roulette, and the survivors go on. The loss is TRL's with the prefixes' advantages plus, per rollout,

    (suffix advantage - prefix advantage) log pi(suffix)

which is 0 for every rollout that was not put to the roulette. See `rollwise.inference.roulette` for the proof that the
mean over the draws is RLOO's gradient on whole rollouts. It holds where advantages enter the gradient linearly, so a
generation may feed one optimiser step only: TRL's clipped ratios, which later steps need, depend on their sign.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import trl
from accelerate.utils import gather_object

from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.inference.head import SuccessHead
from rollwise.inference.hidden import last_hidden_states
from rollwise.inference.roulette import check_unbiased
from rollwise.models.modes import evaluating
from rollwise.ticket import Purpose
from rollwise.training.abort_options import AbortOptions
from rollwise.training.aborting import Aborting
from rollwise.training.calls import Call, Drawn
from rollwise.training.isolation import attributes_set

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object

SUFFIX = "suffix_advantages"
_HOOKS = {
    "_generate_single_turn": ["self", "prompt_ids", "images", "multimodal_fields"],
    "_compute_loss": ["self", "model", "inputs"],
    "_get_per_token_logps_and_entropies": ["self", "model", "input_ids", "attention_mask", "logits_to_keep"],
}


class AbortMixin(TrlTrainer):
    """Put before `CurriculumMixin` and TRL's RLOO trainer, it lets rollouts that are trained on be aborted.

    Rollouts that only measure or screen, judgments and evaluation are left alone.
    """

    _abort: Aborting | None = None
    _head: SuccessHead
    _abort_group: int | None = None  # rollouts of a prompt, while rollouts are made that may be aborted
    _drawn: Drawn | None = None

    # ---- generating ----

    def _roll_out(self, rows: list[int], n: int, purpose: Purpose) -> Call:
        if self._abort is None or purpose != "train":
            plain: Call = super()._roll_out(rows, n, purpose)
            return plain
        with attributes_set(self, _abort_group=n, _drawn=None):
            call: Call = super()._roll_out(rows, n, purpose)
            drawn = self._drawn
        if drawn is None or len(drawn.kept) != len(call.rewards):
            raise SilentNoOpError(
                f"rollouts were generated past the abort point: trl {trl.__version__} or a subclass does not generate "
                "through _generate_single_turn; train without abort"
            )
        return self._weighed(call, drawn, self._abort)

    def _generate_single_turn(self, prompt_ids: Any, images: Any, multimodal_fields: Any) -> Any:
        aborting, group = self._abort, self._abort_group
        if aborting is None or group is None:
            return super()._generate_single_turn(prompt_ids, images, multimodal_fields)
        if images is not None or multimodal_fields:
            raise ConfigError("abort has not been tried with images; train without abort")
        at = aborting.options.at
        if aborting.dry:
            completions = super()._generate_single_turn(prompt_ids, None, {})
            alive = [len(ids) > at for ids in completions]
        else:
            completions = self._at_most(at, prompt_ids)
            alive = [len(ids) == at and ids[-1] not in self.eos_token_ids for ids in completions]
        prefixes = [[*p, *c[:at]] for p, c in zip(prompt_ids, completions, strict=True)]
        values = np.full(len(alive), np.nan)
        values[alive] = self._values([prefix for prefix, lives in zip(prefixes, alive, strict=True) if lives])
        drawn = aborting.draw(
            np.array(gather_object(values.tolist())), np.array(gather_object(alive), dtype=bool), group
        )
        self._drawn = drawn
        start = self.accelerator.process_index * len(alive)
        going = [i for i, lives in enumerate(alive) if lives and drawn.kept[start + i]]
        if going and not aborting.dry:
            more = self._at_most(self.max_completion_length - at, [prefixes[i] for i in going])
            for i, ids in zip(going, more, strict=True):
                completions[i] = [*completions[i], *ids]
        return completions

    def _at_most(self, tokens: int, prompt_ids: list[list[int]]) -> list[list[int]]:
        with attributes_set(self.generation_config, max_new_tokens=tokens):
            generated: list[list[int]] = super()._generate_single_turn(prompt_ids, None, {})
        return generated

    def _values(self, sequences: Sequence[Sequence[int]]) -> list[float]:
        """V after the last token of each sequence, by the live policy."""
        model = _live(self.accelerator.unwrap_model(self.model_wrapped))
        head, device = self._head.to(self.accelerator.device), self.accelerator.device
        batch, values = self.args.per_device_train_batch_size, []
        with evaluating(model):
            for start in range(0, len(sequences), batch):
                rows = [torch.tensor(own) for own in sequences[start : start + batch]]
                ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
                lengths = torch.tensor([len(row) for row in rows])
                mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
                states = last_hidden_states(model, ids.to(device), mask.to(device))
                values += head.value(states[torch.arange(len(rows)), lengths - 1]).tolist()
        return values

    def _calculate_rewards(
        self, inputs: list[Any], prompts: list[Any], completions: list[Any], completion_ids_list: list[list[int]]
    ) -> torch.Tensor:
        """Rewards of what was aborted are not used: reward functions see it, so that their logs stay aligned."""
        rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self._drawn is not None:
            rewards[torch.tensor(~self._drawn.kept, device=rewards.device)] = torch.nan  # also those that are noted
        return rewards

    # ---- learning ----

    def _weighed(self, call: Call, drawn: Drawn, aborting: Aborting) -> Call:
        """The call with the roulette's advantages, where any of its rollouts was put to it."""
        aborting.observe(call.rewards, call.lengths, drawn, call.n)
        if not (drawn.chances < 1).any():
            return replace(call, drawn=drawn)
        prefix, suffix = aborting.advantages(call.rewards, drawn, call.n)
        size = len(call.output["advantages"])
        mine = slice(self.accelerator.process_index * size, (self.accelerator.process_index + 1) * size)
        parts = {"advantages": prefix, SUFFIX: suffix}
        like = call.output["advantages"]
        labels = call.labels
        if labels is not None:
            labels = [label if kept else "aborted" for label, kept in zip(labels, drawn.kept, strict=True)]
        self._correct_logs(prefix, aborting)
        return replace(
            call,
            output={**call.output, **{k: torch.tensor(v[mine], dtype=like.dtype).to(like) for k, v in parts.items()}},
            advantages=prefix.astype(call.advantages.dtype),
            labels=labels,
            drawn=drawn,
        )

    def _correct_logs(self, prefix: np.ndarray, aborting: Aborting) -> None:
        """TRL noted advantages without the roulette, and the mean reward of those that are left, which is too high."""
        self._metrics["train"]["reward"][-1] = aborting.step["reward"]
        noted = self._logs["advantages"]
        for _ in range(min(len(prefix), len(noted))):
            noted.pop()
        noted.extend(prefix.tolist())

    def _compute_loss(self, model: Any, inputs: Any) -> torch.Tensor:
        if self._abort is None or SUFFIX not in inputs:
            loss: torch.Tensor = super()._compute_loss(model, inputs)
            return loss
        with self._noting_logps() as noted:
            loss = super()._compute_loss(model, inputs)
        if len(noted) != 1:
            raise SilentNoOpError(f"trl {trl.__version__} computes log-probabilities {len(noted)} times for a loss")
        at = self._abort.options.at
        return loss + suffix_loss(noted[0], inputs["completion_mask"], inputs["advantages"], inputs[SUFFIX], at=at)

    @contextmanager
    def _noting_logps(self) -> Iterator[list[torch.Tensor]]:
        """Inside, per-token log-probabilities (B, T) that the trainer computes are kept."""
        plain: Any = self._get_per_token_logps_and_entropies
        noted: list[torch.Tensor] = []

        def noting(*args: Any, **kwargs: Any) -> Any:
            found = plain(*args, **kwargs)
            noted.append(found[0])
            return found

        self.__dict__["_get_per_token_logps_and_entropies"] = noting  # before the class's own
        try:
            yield noted
        finally:
            del self.__dict__["_get_per_token_logps_and_entropies"]

    # ---- what can't be done is refused at the start ----

    def _prepare_abort(self, options: AbortOptions) -> Aborting:
        self._check_abort_hooks()
        self._check_abort(options)
        head = SuccessHead.load(options.head)
        head.check(_live(self.accelerator.unwrap_model(self.model)), self._tokenizer)
        self._head = head
        return Aborting(options, head=head.digest, seed=self.args.seed)

    def _check_abort(self, options: AbortOptions) -> None:
        check_unbiased("leave-one-out", "batch-normalised" if self.normalize_advantages else "")
        args, most = self.args, self.max_completion_length
        on_policy = args.gradient_accumulation_steps % (args.steps_per_generation * self.num_iterations) == 0
        reasons = (
            (options.at >= most, f"at {options.at} is not before max_completion_length {most}: lower at"),
            (self.use_vllm, "vLLM generates in one piece so far: use_vllm=False"),
            (
                getattr(self, "use_transformers_continuous_batching", False),
                "continuous batching generates in one piece: use_transformers_continuous_batching=False",
            ),
            (args.generation_kwargs, "generation_kwargs may count tokens from where generation starts: leave them out"),
            (self.gate is not None, "a gate rolls out other groups in place of some, by their rewards: use none"),
            (self._screens, "the curriculum trains on rollouts that it screened: use one that does not screen"),
            (self.beta != 0.0, "the divergence of a suffix would be part of its reward: beta=0.0"),
            (
                self.mask_truncated_completions,
                "what is aborted is truncated, and would be masked: mask_truncated_completions=False",
            ),
            (self.reward_clip_range, "reward_clip_range is not applied here: clip in the reward function"),
            (
                not on_policy,
                "where a generation feeds several optimiser steps, clipped ratios bias the gradient: num_iterations=1, "
                "and steps_per_generation no more than gradient_accumulation_steps",
            ),
            (getattr(self, "aux_loss_enabled", False), "mixtures of experts are untried: router_aux_loss_coef=0.0"),
            (self._is_sharded(), "no process can read V where the policy's weights are sharded"),
        )
        wrong = next((reason for applies, reason in reasons if applies), None)
        if wrong is not None:
            raise ConfigError(f"abort can't be used like this: {wrong}; or train without abort")

    @classmethod
    def _check_abort_hooks(cls) -> None:
        """Refuse a TRL whose hooks are not where they were, rather than train without aborting."""
        bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "trl"]
        for name, expected in _HOOKS.items():
            found = next((vars(base)[name] for base in bases if name in vars(base)), None)
            parameters = list(inspect.signature(found).parameters) if found else []
            if parameters[: len(expected)] != expected:
                raise SilentNoOpError(
                    f"trl {trl.__version__} has {name}({parameters}) where {expected} is expected, so nothing would be "
                    "aborted rightly; use a version of trl that this rollwise names in its requirements"
                )


def suffix_loss(
    logps: torch.Tensor, mask: torch.Tensor, prefix: torch.Tensor, suffix: torch.Tensor, *, at: int
) -> torch.Tensor:
    """What is missing of a loss whose rows all have the prefixes' advantages; its value is 0, its gradient is not.

    minus the mean over rows of (suffix - prefix advantage) grad log pi(suffix).

    Args:
        logps: (B, T) of the tokens, under the policy that is trained and that generated them.
        mask: (B, T) 0 on padding.
        prefix: (B,) advantages.
        suffix: (B,) advantages.
        at: Tokens of a prefix.
    """
    after = (logps * mask)[:, at:].sum(1)
    return -((suffix - prefix) * (after - after.detach())).mean()


def _live(model: Any) -> Any:
    base = getattr(model, "get_base_model", None)  # of PEFT: the model with its adapters in place
    return model if base is None else base()
