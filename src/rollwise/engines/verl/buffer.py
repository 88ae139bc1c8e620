"""verl's replay buffers, which tell the curriculum every group: trained, filtered, surplus, stale or failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import transfer_queue as tq
from omegaconf import OmegaConf
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from rollwise.engines.verl.dataset import TICKET
from rollwise.engines.verl.seat import Heard, Seat
from rollwise.engines.verl.settings import PATH, TOLD
from rollwise.engines.verl.shared import SHARED
from rollwise.errors import ConfigError


class _Telling:
    """Mixed into verl's buffers."""

    trainer_mode: str
    trainer_config: Any
    partitions: Mapping[str, Mapping[str, Any]]
    _fates: Mapping[str, str] = {}
    _samples = 0

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """A batch as verl's own buffer chooses it, told before it trains."""
        seat = _seat()
        if partition_id != "train":
            batch, metrics = super().sample(global_steps, partition_id, batch_size)  # type: ignore[misc]
            seat.evaluated(global_steps, read_scores(partition_id, list(batch.keys)))
            return batch, metrics
        seat.start(global_steps)
        batch, metrics = super().sample(global_steps, partition_id, batch_size)  # type: ignore[misc]
        seat.tell(read_groups(partition_id, list(batch.keys), seat))
        self._samples += 1
        each = int(self.trainer_config.get("parameter_sync_step", 1) or 1)
        return batch, {**metrics, **seat.finish(global_steps, last=self._samples % each == 0)}

    def _evict_terminal_groups(self, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
        stale, filtered, failed, _ = eviction_reasons
        self._fates = (
            dict.fromkeys(failed, "failed") | dict.fromkeys(filtered, "filtered") | dict.fromkeys(stale, "stale")
        )
        return super()._evict_terminal_groups(global_steps, partition_id, eviction_reasons)  # type: ignore[misc]

    def _clear_groups(self, partition_id: str, uids: set[str]) -> None:
        """Tell groups that won't train, before TransferQueue forgets them."""
        if partition_id == "train" and uids:
            keys = [key for key in self.partitions[partition_id] if key.split("_")[0] in uids]
            bare = uids - {key.split("_")[0] for key in keys} if self.trainer_mode != "sync" else set()
            _seat().tell(read_groups(partition_id, keys, _seat(), fates=self._fates, bare=bare))
        super()._clear_groups(partition_id, uids)  # type: ignore[misc]


class CurriculumReplayBuffer(_Telling, ReplayBuffer):
    """For the mode `sync`."""


class CurriculumReplayBufferAsync(_Telling, ReplayBufferAsync):
    """For the modes `colocate_async` and `separate_async`."""


def replay_buffer(**given: Any) -> CurriculumReplayBuffer | CurriculumReplayBufferAsync:
    """The buffer for the trainer's mode; `trainer.v1.sampler.sampler_kwargs` are further arguments of verl's own.

    Raises:
        ConfigError: `sampler_kwargs` has a name that verl's buffer does not know.
    """
    kind = CurriculumReplayBuffer if given["trainer_mode"] == "sync" else CurriculumReplayBufferAsync
    more: Any = OmegaConf.to_container(given.get("sampler_kwargs") or OmegaConf.create({}), resolve=True)
    try:
        SHARED.buffer = kind(**given, **more)
    except TypeError as error:
        raise ConfigError(f"trainer.v1.sampler.sampler_kwargs={more}: {error}") from error
    return SHARED.buffer  # type: ignore[no-any-return]


def read_groups(
    partition_id: str,
    keys: list[str],
    seat: Seat,
    *,
    fates: Mapping[str, str] | None = None,
    bare: Collection[str] = (),
) -> list[Heard]:
    """Groups that are still in TransferQueue.

    Args:
        partition_id: TransferQueue's.
        keys: of the trajectories, `UID_SESSION_INDEX`; of a session with several outputs the last one counts.
        seat: for its `decode`.
        fates: a prompt's uid -> why it does not train, else "surplus"; None: all of them train.
        bare: uids of prompts without any trajectory, whose own rows are there.
    """
    groups: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    fate_of: dict[str, str] = {}
    if keys:
        names = ["rm_scores", "responses", "extra_info", "extra_fields"]
        data = tq.kv_batch_get(keys=keys, partition_id=partition_id, select_fields=names)
        scores, responses, infos, fields = (_rows(data[name]) for name in names)
        for uid, row in _last_outputs(keys):
            ticket_id = infos[row][TICKET]
            text = "" if seat.decode is None else seat.decode(responses[row].tolist())
            groups[ticket_id].append((_told(scores[row], fields[row]), len(responses[row]), text))
            fate_of[ticket_id] = "trained" if fates is None else fates.get(uid, "surplus")
    heard = []
    for ticket_id, rows in groups.items():
        rewards, tokens, texts = zip(*rows, strict=True)
        heard.append(Heard(ticket_id, rewards, tokens, texts, fate_of[ticket_id]))
    if bare:
        data = tq.kv_batch_get(keys=list(bare), partition_id=partition_id, select_fields=["extra_info"])
        heard += [Heard(info[TICKET], fate="failed") for info in _rows(data["extra_info"])]
    return heard


def read_scores(partition_id: str, keys: list[str]) -> dict[str, list[float]]:
    """Rewards by the prompt's uid, of trajectories that are still in TransferQueue."""
    found: dict[str, list[float]] = defaultdict(list)
    if keys:
        data = tq.kv_batch_get(keys=keys, partition_id=partition_id, select_fields=["rm_scores", "extra_fields"])
        scores, fields = _rows(data["rm_scores"]), _rows(data["extra_fields"])
        for uid, row in _last_outputs(keys):
            found[uid].append(_told(scores[row], fields[row]))
    return found


def _told(scores: Any, fields: Any) -> float:
    """The reward of one trajectory: what its reward function says is told, else the score that is trained on."""
    said = fields.get("reward_extra_info") if isinstance(fields, Mapping) else None
    told = said.get(TOLD) if isinstance(said, Mapping) else None
    return float(scores.sum()) if told is None else float(told)


def _last_outputs(keys: list[str]) -> list[tuple[str, int]]:
    """The uid and the row of each session's last output."""
    last: dict[tuple[str, str], tuple[int, int]] = {}
    for row, key in enumerate(keys):
        uid, session, index = key.rsplit("_", 2)
        last[uid, session] = max(last.get((uid, session), (-1, -1)), (int(index), row))
    return [(uid, row) for (uid, _), (_, row) in sorted(last.items())]


def _rows(column: Any) -> list[Any]:
    """The rows of a column: a tensor, nested or not, or a stack of objects."""
    rows = column.unbind() if getattr(column, "is_nested", False) else column
    return [getattr(row, "data", row) if not hasattr(row, "sum") else row for row in rows]


def _seat() -> Seat:
    if SHARED.seat is None:
        raise ConfigError(
            f"the replay buffer tells, but nothing asks: set data.custom_cls.path={PATH} and "
            "data.custom_cls.name=CurriculumDataset"
        )
    return SHARED.seat
