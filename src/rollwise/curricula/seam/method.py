"""The hooks of a method: it implements some of them, and `Curriculum` calls them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from rollwise.allocators import Allocator
from rollwise.columns import Columns
from rollwise.curricula.seam.picks import Picks
from rollwise.curricula.seam.rails import Rails
from rollwise.errors import ConfigError
from rollwise.rng import RngStreams
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import LearnsFrom
from rollwise.tickets.ticket import Purpose, Ticket, allotted_rollouts, rollouts_to_make


class Method(ABC):
    """The hooks. Only `select`, `hold` and `release` have no use as they stand here."""

    columns_spec: Mapping[str, tuple[type, Any]] = MappingProxyType({})
    """What the method remembers of each prompt: name -> (dtype, default)."""

    columns: Columns
    """What is remembered of each prompt, by the method and by the seam: arrays (N,) by name."""

    rng: RngStreams
    """Random streams by name."""

    rails: Rails | None
    """The safety rails in force."""

    allocator: Allocator | None
    """What gives each ticket its own number of rollouts; None: all have the same."""

    default_rails: ClassVar[Rails | None] = None
    """The safety rails of a method that adapts; None for one that visits every prompt anyhow."""

    rotates: ClassVar[bool] = False
    """Whether it serves every prompt in its turn and nothing else: then none is set aside, and none is starved."""

    paper_gate: ClassVar[tuple[str, dict[str, Any]] | None] = None
    """Dynamic sampling that the method's paper includes: a name in `GATES` and the options that it needs."""

    paper_trainer: ClassVar[str | None] = None
    """The trainer that the method's paper is about ("rloo"); None where it fits any."""

    def build(self) -> None:  # noqa: B027 - optional
        """Make everything that changes; called when the pool is known, before `release` has seen every slot."""

    learns_from: LearnsFrom = "rewards"
    """What the method needs of a group: "means": its mean reward, "advantages": its mean |advantage|, "rewards": each
    rollout's reward. A group told by its mean alone (see `Outcome`) is refused where that does not say enough."""

    probe_rollouts: int | None = None
    """Rollouts of a probe, where the method insists on a number."""

    probe_purpose: Purpose = "measure"
    """What the rollouts of a probe are for."""

    next_ask: int | None = None
    """How many prompts the next `ask` will want, while `select_probes` chooses; None if the caller did not say."""

    def check_screening(self, group_size: int) -> None:
        """`ConfigError` where a screening takes all `group_size` rollouts of a group, so that none is left to make."""
        screened = self.probe_rollouts or group_size
        if self.probe_purpose == "screen" and screened >= group_size:
            raise ConfigError(
                f"{screened} screening rollouts leave none of a group of {group_size} to be made: lower "
                "screen_rollouts, or take larger groups"
            )

    def to_make(self, ticket: Ticket, group_size: int, *, kept: int | None) -> int:
        """Rollouts to make of a ticket to train on; see `rollouts_to_make`, and with an allocator `allotted_rollouts`.

        Args:
            ticket: the ticket.
            group_size: of a ticket that does not say.
            kept: rollouts of the prompt's screening that are still there; None without any.
        """
        if self.allocator is not None:
            return allotted_rollouts(ticket, group_size, kept=kept, screened=self.probe_rollouts or group_size)
        return rollouts_to_make(ticket, group_size, kept=kept, screens=self.probe_purpose == "screen")

    def set_rollouts(self, n: int) -> None:  # noqa: B027 - optional
        """The groups of the `ask` that begins have `n` rollouts each; not called where `ask` is not told."""

    @property
    def wants_feedback(self) -> bool:
        """Whether it learns from what the optimiser step gained on each group; see `Curriculum.feedback`."""
        return False

    def learn_gains(self, slots: np.ndarray, gains: np.ndarray) -> None:  # noqa: B027 - optional
        """The step gained `gains` (K,) on the groups of these prompts (K,)."""

    @property
    def follows_score(self) -> bool:
        """Whether it uses the policy's score on the evaluation set; see `note_score`."""
        return False

    def note_score(self, score: float) -> None:  # noqa: B027 - optional
        """The policy's score on the evaluation set, in [0, 1]; a trainer gives it after each evaluation."""

    @abstractmethod
    def select(self, k: int) -> Picks:
        """Choose `k` distinct slots of those not in flight; at least `k` are there. Taking them out is allowed."""

    @property
    def grouped_by(self) -> tuple[str, ...] | None:
        """The pool's columns by which it groups prompts; () where all are one group, None where it needs no groups."""
        return None

    @property
    def wants_probes(self) -> bool:
        """Whether `probe` can ever give anything."""
        return type(self).select_probes is not Method.select_probes

    def select_probes(self, k: int) -> Picks:
        """Choose up to `k` distinct slots of those not in flight, to be measured."""
        return Picks.join([])

    def awaited(self) -> np.ndarray:
        """Slots whose screening rollouts must be kept: the rest of their group is still to be rolled out."""
        return np.empty(0, dtype=np.int64)

    def observe_probes(self, evidence: Evidence) -> None:  # noqa: B027 - optional
        """Learn from measured groups of distinct prompts, all of them on hold."""

    def observe(self, evidence: Evidence) -> None:  # noqa: B027 - optional
        """Update beliefs from groups of distinct prompts, all of them on hold."""

    def end_step(self) -> None:  # noqa: B027 - optional
        """Called once at the end of every step in which `tell` was called."""

    def hold(self, slots: np.ndarray) -> None:  # noqa: B027 - optional
        """These slots may not be chosen until released; some may be on hold already."""

    def release(self, slots: np.ndarray) -> None:  # noqa: B027 - optional
        """These slots may be chosen (again), ranked by the present belief."""

    def chosen_elsewhere(self, slots: np.ndarray) -> None:  # noqa: B027 - optional
        """Another curriculum of the same composite chose these, or its rails did: `mark` was not called for them."""

    def expected(self, slots: np.ndarray) -> np.ndarray:
        """The mean score believed of each of the slots, (K,); NaN where there is no belief."""
        return np.full(len(slots), np.nan)

    def believed(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The believed success rate of each of the slots and its standard deviation, (K,) each; None without a belief.

        For allocators. By default of a method with a belief it is the mean score.
        """
        return None

    def need_beta_belief(self) -> None:
        """Raise `ConfigError` unless it has a Beta belief about each prompt, which `posterior` gives."""
        raise ConfigError(
            f"posterior advantages need a curriculum with a Beta belief about each prompt, and {type(self).__name__} "
            "has none; use MaPP, MoPPS or BOTS, or other advantages"
        )

    def posterior(self) -> tuple[np.ndarray, ...]:
        """The parameters of its belief about every prompt, (N,) each, with all outcomes so far; () without one."""
        return ()

    def own_metrics(self) -> dict[str, float]:
        """Numbers of the method's own, for `metrics`."""
        return {}

    def own_state(self) -> dict[str, Any]:
        """What the method must save beyond its columns, JSON-safe."""
        return {}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:  # noqa: B027 - optional
        """Take back `own_state`, on a fresh build whose columns are loaded; `added` are slots of new prompts."""

    # ---- models of the method's own ----

    @property
    def reads_policy(self) -> bool:
        """Whether it can't choose without the policy, which its judge reads."""
        return False

    def start_from(self, source: str) -> None:  # noqa: B027 - optional
        """Know the folder or hub id that the policy's weights come from; a trainer says it before it binds."""

    def follow(self, model: Any, tokenizer: Any, *, sharded: bool = False) -> None:  # noqa: B027 - optional
        """Know the policy that is trained, for judges that read it; see `Judge.follow`. A trainer says it at once."""

    def take_costs(self) -> dict[str, float]:
        """What its judge has cost since this was last called; see `Judge.take_costs`."""
        return {}

    def save_files(self, folder: Path) -> None:  # noqa: B027 - optional
        """Write what is too big for `state_dict` (a value model's weights) into `folder`; mostly there is nothing."""

    def load_files(self, folder: Path) -> None:  # noqa: B027 - optional
        """Take back what `save_files` wrote, after `load_state_dict` of the same moment.

        Raises:
            StateError: the files are of another moment, damaged, or not there.
        """
