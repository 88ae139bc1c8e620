"""Curricula made of curricula over one pool: shared tickets and clock, each child with its own beliefs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Unpack
from urllib.parse import quote

import numpy as np

from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks, checked_picks
from rollwise.errors import ConfigError, PoolError, StateError
from rollwise.judges import Answer, Lesson, Question
from rollwise.judges.base import summed
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import RewardSpec


class Composite(Curriculum):
    """Children by name: every child learns from every group that is trained on, from probes the one that wants them.

    A prompt in flight is in flight for all children.

    The children given are unbound, and stay so: copies of them work, with the composite's tickets, clock and
    reward_spec, and random streams derived from its seed and the child's name. They have no rails of their own, and no
    allocator. One of them may want probes, one may ask the policy; the composite passes on both.

    Args:
        pool: needs whatever the children need.
        children: name -> curriculum.
        options: of the composite, to be saved with those of the children.
        **core: see `CoreOptions`.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    """Options that are curricula, which a configuration file gives as `{curriculum: NAME, options: {...}}`."""

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        children: Mapping[str, Curriculum],
        options: Mapping[str, Any],
        **core: Unpack[CoreOptions],
    ) -> None:
        for name, child in children.items():
            if not isinstance(child, Curriculum):
                raise ConfigError(f"{name!r} must be a curriculum, got {child!r}")
            if child._pool is not None:
                raise ConfigError(f"the curriculum of {name!r} has a pool already; give an unbound one")
            if child.allocator is not None:
                raise ConfigError(f"the allocator of {name!r} would do nothing; give it to the {type(self).__name__}")
        probing = [name for name, child in children.items() if child.wants_probes]
        if len(probing) > 1:
            raise ConfigError(f"only one curriculum here may measure by probes, but {' and '.join(probing)} do")
        self.prober = probing[0] if probing else None
        if self.prober is not None:
            self.probe_rollouts = children[self.prober].probe_rollouts
            self.probe_purpose = children[self.prober].probe_purpose
        asking = [name for name, child in children.items() if child.wants_answers]
        if len(asking) > 1:
            raise ConfigError(f"only one curriculum here may ask the policy, but {' and '.join(asking)} do")
        self.asker = asking[0] if asking else None
        self.makers = dict(children)
        described = {name: {"method": type(c).__name__, "options": c.options} for name, c in children.items()}
        super().__init__(pool, options={**options, "children": described}, **core)

    def build(self) -> None:
        self._chosen_by: dict[str, list[np.ndarray]] = {}  # of the `ask` that goes on
        self.children: dict[str, Curriculum] = {}
        for name, maker in self.makers.items():
            child = copy.copy(maker)
            child.seed = int(self.rng[f"lane:{name}"].integers(2**63))
            child.reward_spec = self.reward_spec
            child._start(self.pool, ledger=self.ledger)
            self.children[name] = child
        needs = {child.learns_from for child in self.children.values()}
        self.learns_from = next((need for need in ("rewards", "advantages") if need in needs), "means")

    def child(self, name: str) -> Curriculum:
        """The child of this name; `PoolError` if there is none."""
        if name not in self.children:
            raise PoolError(f"no curriculum {name!r} here; there are {sorted(self.children)}")
        return self.children[name]

    @property
    def grouped_by(self) -> tuple[str, ...] | None:
        named = [child.grouped_by for child in self.children.values() if child.grouped_by is not None]
        return tuple(dict.fromkeys(name for columns in named for name in columns)) if named else None

    def set_clock(self, now: int) -> None:
        super().set_clock(now)
        for child in self.children.values():
            child.set_clock(now)

    @property
    def counts_tokens(self) -> bool:
        return any(maker.counts_tokens for maker in self.makers.values())

    def count_tokens(self, total: int) -> None:
        super().count_tokens(total)
        for child in self.children.values():
            child.count_tokens(total)

    @property
    def follows_score(self) -> bool:
        return any(maker.follows_score for maker in self.makers.values())

    def note_score(self, score: float) -> None:
        for child in self.children.values():
            child.note_score(score)

    @property
    def wants_feedback(self) -> bool:
        return any(maker.wants_feedback for maker in self.makers.values())

    def learn_gains(self, slots: np.ndarray, gains: np.ndarray) -> None:
        for child in self.children.values():
            child.learn_gains(slots, gains)

    def set_reward_spec(self, spec: RewardSpec) -> None:
        super().set_reward_spec(spec)
        for child in self.children.values():
            child.set_reward_spec(spec)

    def set_rollouts(self, n: int) -> None:
        for child in self.children.values():
            child.set_rollouts(n)

    @property
    def wants_probes(self) -> bool:
        return self.prober is not None

    def select_probes(self, k: int) -> Picks:
        if self.prober is None:
            return Picks.join([])
        child = self.children[self.prober]
        child.next_ask = None if self.next_ask is None else max(1, self.part_of(self.prober, self.next_ask))
        try:
            picks = checked_picks(child, k, probes=True)
        finally:
            child.next_ask = None
        child.counters["probed"] += len(picks)
        return picks

    def part_of(self, name: str, k: int) -> int:
        """How many prompts `ask(k)` will want of a child; here all of them."""
        return k

    def awaited(self) -> np.ndarray:
        return np.empty(0, dtype=np.int64) if self.prober is None else self.children[self.prober].awaited()

    def observe_probes(self, evidence: Evidence) -> None:
        if self.prober is not None:
            self.children[self.prober].observe_probes(evidence)

    @property
    def wants_answers(self) -> bool:
        return self.asker is not None

    @property
    def wants_chances(self) -> bool:
        return self.asker is not None and self.makers[self.asker].wants_chances

    @property
    def judge_weight(self) -> float:
        return 0.0 if self.asker is None else self.makers[self.asker].judge_weight

    def questions(self, k: int) -> list[Question]:
        if self.asker is None:
            return []
        return self.children[self.asker].questions(self.part_of(self.asker, k))

    def asked_question(self, question_id: str) -> bool:
        return self.asker is not None and self.children[self.asker].asked_question(question_id)

    def read_answers(self, answers: list[Answer]) -> None:
        if self.asker is not None:
            self.children[self.asker].read_answers(answers)

    def take_lessons(self) -> list[Lesson]:
        return [] if self.asker is None else self.children[self.asker].take_lessons()

    def record_choice(self, name: str, picks: Picks) -> None:
        """Record a child's choice: mark and count it for that child, and hold it for all."""
        child = self.children[name]
        child.mark(picks)
        child.counters["asked"] += len(picks)
        self._chosen_by.setdefault(name, []).append(picks.slots)
        self.hold(picks.slots)

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        for name, child in self.children.items():
            own = np.concatenate([*self._chosen_by.get(name, []), np.empty(0, dtype=np.int64)])
            child.chosen_elsewhere(picks.slots[~np.isin(picks.slots, own)])
        self._chosen_by = {}

    def chosen_elsewhere(self, slots: np.ndarray) -> None:
        for child in self.children.values():
            child.chosen_elsewhere(slots)

    def observe(self, evidence: Evidence) -> None:
        for child in self.children.values():
            child.observe(evidence)

    def end_step(self) -> None:
        for child in self.children.values():
            child.told_step = self.told_step
            child.end_step()
            child.told_step = -1

    def hold(self, slots: np.ndarray) -> None:
        for child in self.children.values():
            child.hold(slots)

    def release(self, slots: np.ndarray) -> None:
        for child in self.children.values():
            child.release(slots)

    def expected(self, slots: np.ndarray) -> np.ndarray:
        found = np.full(len(slots), np.nan)
        for child in self.children.values():  # of those that have a belief, the first
            found = np.where(np.isnan(found), child.expected(slots), found)
        return found

    def believed(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        beliefs = (child.believed(slots) for child in self.children.values())
        return next((belief for belief in beliefs if belief is not None), None)

    def own_metrics(self) -> dict[str, float]:
        return {
            f"{name}/{key}": value
            for name, child in self.children.items()
            for key, value in {
                "asked": float(child.counters["asked"]),
                **child.own_metrics(),
                **child.scheduled(),
            }.items()
        }

    def own_state(self) -> dict[str, Any]:
        return {"children": {name: child.body_state() for name, child in self.children.items()}}

    def load_body(
        self, body: Mapping[str, Any], old_rows: np.ndarray, new_rows: np.ndarray, *, strict: bool = True
    ) -> None:
        saved = body["own"]["children"]
        if set(saved) != set(self.children):
            raise StateError(f"the state is of the curricula {sorted(saved)}, and here are {sorted(self.children)}")
        self.children = {name: self.children[name] for name in saved}  # they choose and answer in the order saved
        for name, child in self.children.items():
            try:
                child.load_body(saved[name], old_rows, new_rows, strict=strict)
            except KeyError as error:
                raise StateError(
                    f"the state of the curriculum {name!r} is not that of a {type(child).__name__}: it lacks {error}"
                ) from error
        super().load_body(body, old_rows, new_rows, strict=strict)

    @property
    def reads_policy(self) -> bool:
        return any(maker.reads_policy for maker in self.makers.values())

    def start_from(self, source: str) -> None:
        for child in self._own_makers_and_children():
            child.start_from(source)

    def follow(self, model: Any, tokenizer: Any, *, sharded: bool = False) -> None:
        for child in self._own_makers_and_children():
            child.follow(model, tokenizer, sharded=sharded)

    def _own_makers_and_children(self) -> list[Curriculum]:
        self.makers = {name: copy.copy(maker) for name, maker in self.makers.items()}  # those given stay as they are
        return [*self.makers.values(), *(self.children.values() if self._pool is not None else ())]

    def take_costs(self) -> dict[str, float]:
        return summed(child.take_costs() for child in self.children.values())

    def save_files(self, folder: Path) -> None:
        for name, child in self.children.items():
            child.save_files(_folder_of(folder, name))

    def load_files(self, folder: Path) -> None:
        for name, child in self.children.items():
            child.load_files(_folder_of(folder, name))


def _folder_of(folder: Path, name: str) -> Path:
    """A folder for the child, also where its name holds characters that a path can't.

    >>> _folder_of(Path("x"), "../a").name
    'child-..%2Fa'
    """
    return Path(folder) / f"child-{quote(name, safe='')}"
