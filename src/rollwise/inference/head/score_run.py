"""`rollwise head score`: reads a head along rollouts, and writes a line for each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollwise.inference.files import RolloutSet, model_of, remove_kept
from rollwise.inference.head.fitted_on import check_weights, fitted_among, overlap_words, prompts_of
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.hidden import Progress
from rollwise.inference.head.scoring import Score, score_rollouts
from rollwise.state import check_no_folder, write_atomically


@dataclass(frozen=True)
class ScoredFile:
    """What was written.

    Attributes:
        path: The file of lines.
        head: The head.
        rollouts: N rollouts.
        scores: (N,) in their order.
        fitted: On how many of the prompts the head was fitted, in words.
    """

    path: Path
    head: SuccessHead
    rollouts: RolloutSet
    scores: list[Score]
    fitted: str


def run_score(
    rollouts: str, head: str, *, bar: Callable[[str], Progress], model: str | None = None, out: str | None = None
) -> ScoredFile:
    """Score rollouts, and write a line for each. OUT.part keeps what was read, so that a killed pass goes on.

    Args:
        rollouts: A folder of `rollwise rollouts`.
        head: A file of `rollwise head fit`.
        bar: Gives a progress bar for each kind of work.
        model: Folder, hub id or embedded; by default the model that made the rollouts.
        out: The file to write; by default `scores.jsonl` in the folder.

    Raises:
        ConfigError: rollouts, a head and a model that don't belong together.
        StateFileError: a damaged file.
    """
    path = Path(out or Path(rollouts) / "scores.jsonl")
    check_no_folder(path, "scores.jsonl")
    own, read = SuccessHead.load(head), RolloutSet.read(rollouts)
    policy, tokenizer, _ = model_of(read, model, progress=bar("warm start"))
    own.check(policy, tokenizer)
    check_weights(own, policy)
    prompts = prompts_of(read)
    fitted = overlap_words(fitted_among(own, prompts), len(prompts))
    part = path.with_name(f"{path.name}.part")
    made = score_rollouts(policy, own, read, progress=bar("rollouts scored"), kept=part)
    scores = sorted(made, key=lambda score: score.index)
    text = "".join(json.dumps(_line(score, read), ensure_ascii=False) + "\n" for score in scores)
    write_atomically(path, text.encode("utf-8", "surrogatepass"))
    remove_kept(part)
    return ScoredFile(path, own, read, scores, fitted)


def _line(score: Score, rollouts: RolloutSet) -> dict[str, Any]:
    i = score.index
    return {
        "id": rollouts.ids[rollouts.prompt[i]],
        "rollout": int(rollouts.number[i]),
        "reward": float(rollouts.rewards[i]),
        "truncated": bool(rollouts.truncated[i]),
        "value_end": round(score.value_end, 6),
        "values": score.values.round(6).tolist(),
        "remaining": score.remaining.round(3).tolist(),
    }
