"""Several heads on several folders of rollouts: does a head transfer to another policy, do more prompts help it?

Source: `frontier-and-zip-rc-lite`, Table 6 (cross-policy transfer) and its heads of 256 and 512 prompts (Table 7).
Intervals, and AUC within prompts, are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.evaluation.bench import bench_of
from rollwise.inference.files import RolloutSet, model_of
from rollwise.inference.head.fitted_on import check_prompts
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.hidden import Progress
from rollwise.inference.head.scoring import score_rollouts
from rollwise.inference.matrix.config import MatrixConfig
from rollwise.inference.matrix.table import Cell, auc_with_interval, write_matrix
from rollwise.inference.measures.measures import within_prompt_auc
from rollwise.models.identity import weights_digest


def run_matrix(config: MatrixConfig, bar: Callable[[str], Progress]) -> list[Cell]:
    """Score every folder with every head, and write the tables; killed, the same command goes on where it was.

    Raises:
        ConfigError: heads, rollouts and models that don't belong together, or prompts that a head was fitted on.
        StateFileError: a damaged file.
    """
    if Path(config.out).is_file():
        raise ConfigError(f"out must be a folder, and {config.out!r} is a file; name another --out")
    heads = {path: SuccessHead.load(path) for path in config.heads}
    sets = {folder: RolloutSet.read(folder) for folder in config.folders}
    for folder, rollouts in sets.items():
        for path, head in heads.items():
            check_prompts(head, rollouts, accepted=config.fitted, of=f"{folder!r} and {path!r}: ")
    cells = []
    for folder, rollouts in sets.items():
        cells += _row(config, folder, rollouts, heads, bar)
    cells.sort(key=lambda cell: (config.heads.index(cell.head), config.folders.index(cell.rollouts)))
    write_matrix(Path(config.out), cells)
    return cells


def _row(
    config: MatrixConfig, folder: str, rollouts: RolloutSet, heads: dict[str, SuccessHead], bar: Callable[..., Progress]
) -> list[Cell]:
    """All heads on one folder."""
    solved_at = bench_of(folder).solved_at
    model, tokenizer, _ = model_of(rollouts, config.model, progress=bar("warm start"))
    digest, good, found = weights_digest(model), rollouts.rewards >= solved_at, []
    for i, (path, head) in enumerate(heads.items()):
        head.check(model, tokenizer)
        part = Path(config.out) / f"scored-{config.folders.index(folder)}-{i}"
        made = score_rollouts(model, head, rollouts, progress=bar(f"{Path(path).stem} on {folder}"), kept=part)
        values = np.zeros(len(rollouts))
        for score in made:
            values[score.index] = score.value_end
        fitted = head.model.get("weights_digest")
        prompts = head.about.get("prompts")
        found.append(
            Cell(
                path,
                prompts,
                folder,
                len(np.unique(rollouts.prompt)),
                None if fitted is None else fitted == digest,
                *auc_with_interval(values, good, rollouts.prompt, resamples=config.resamples),
                within_prompt_auc(values, good, rollouts.prompt),
            )
        )
    return found
