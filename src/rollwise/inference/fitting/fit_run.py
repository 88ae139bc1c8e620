"""`rollwise head fit`: reads the rollouts' hidden states, fits a head and its verdict, and saves them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rollwise.inference.files import KeptBatches, RolloutSet, model_of, pass_facts
from rollwise.inference.fitting.fit import Fit
from rollwise.inference.fitting.fit_config import FitConfig
from rollwise.inference.fitting.fitting import fit_head, position_weights
from rollwise.inference.fitting.paper_fitting import fit_paper
from rollwise.inference.fitting.structured import read_labelled
from rollwise.inference.fitting.verdict_fitting import Judged, judge_by, window_means
from rollwise.inference.head.fitted_on import PROMPT_HASHES, prompt_hashes, prompts_of
from rollwise.inference.head.head import SuccessHead, head_to_replace
from rollwise.inference.head.hidden import Progress, gather_states
from rollwise.models.identity import made_by


@dataclass(frozen=True)
class Fitted:
    """What was fitted.

    Attributes:
        path: The head's file.
        rollouts: What it was fitted on.
        head: As it was saved.
        fit: How good it is there.
        positions: How many were read.
        judged: Its verdict, or why it has none.
        replaced: Another head, which the file held before.
    """

    path: Path
    rollouts: RolloutSet
    head: SuccessHead
    fit: Fit
    positions: int
    judged: Judged
    replaced: SuccessHead | None = None

    def words(self) -> str:
        """Some lines on what it was fitted on, and how well."""
        fit, rollouts, spec = self.fit, self.rollouts, self.head.spec
        left_out = f" ({rollouts.unscored:,} without a reward left out)" if rollouts.unscored else ""
        if fit.method != "convex":
            proof = "the paper's recipe stops after two epochs, wherever that is"
        elif fit.converged:
            proof = f"within {fit.gap:.1e} nats of the best head"
        else:
            proof = f"NOT CONVERGED, up to {fit.gap:.1e} nats from the best head: raise --l2"
        return (
            f"{len(np.unique(rollouts.prompt)):,} prompts, {len(rollouts):,} rollouts of mean reward "
            f"{rollouts.rewards.mean():.3f}{left_out}, {self.positions:,} of {rollouts.lengths.sum():,} positions\n"
            f"reward states {list(spec.rewards)}, length edges {list(spec.edges)}: {spec.size} rows of "
            f"{self.head.hidden_size}\n"
            f"cross-entropy {fit.cross_entropy:.4f} nats where it was fitted, {fit.baseline:.4f} without looking; "
            f"gradient {fit.gradient_norm:.1e} after {fit.iterations} iterations, {proof}\n"
            f"{self.judged.said}{self._replaced_words()}"
        )

    def _replaced_words(self) -> str:
        if self.replaced is None:
            return ""
        about = self.replaced.about
        folders = ", ".join(map(str, about.get("folders", []))) or "unknown rollouts"
        return f"replaced: the file held another head, of {about.get('rollouts', '?')} rollouts in {folders}\n"


def run_fit(config: FitConfig, bar: Callable[[str], Progress]) -> Fitted:
    """Fit a head and save it. What is read of the model is kept in OUT.part until then, so that a killed fit goes on.

    Args:
        config: The command's options.
        bar: Gives a progress bar for each kind of work.

    Raises:
        ConfigError: rollouts or options that don't fit.
        StateFileError: a damaged file.
    """
    before = head_to_replace(config.out)
    rollouts, spec = read_labelled(config, bar)
    model, tokenizer, source = model_of(rollouts, config.model, progress=bar("warm start"))
    most, seed = config.most_positions, config.seed
    # Neither --rewards nor --edges nor --l2 decide what is read: a killed fit goes on with others too.
    kept = KeptBatches(
        f"{config.out}.part", pass_facts(model, rollouts, max_positions=most, seed=seed, judging=config.judging)
    )
    also = window_means if config.judging else None
    told = bar("rollouts read")
    read = gather_states(model, rollouts, max_positions=most, seed=seed, progress=told, also=also, kept=kept)
    labels = spec.labels(read.remaining, rollouts.rewards[read.owner])
    if config.method == "paper":
        fit = fit_paper(read.states, labels, spec, rollouts=read.owner, seed=config.seed)
    else:
        weights = position_weights(read.owner, config.weighting)
        told = bar("rounds of the fit, at most")
        fit = fit_head(read.states, labels, spec, l2=config.l2, weights=weights, progress=told)
    about = {
        "fit": fit.to_dict(),
        "weighting": config.weighting if config.method == "convex" else "position",
        "positions": len(read.owner),
        "prompts": len(np.unique(rollouts.prompt)),
        "rollouts": len(rollouts),
        "folders": list(config.rollouts),
        "model": source,
        "configs": rollouts.configs,
        PROMPT_HASHES: prompt_hashes(prompts_of(rollouts)),
    }
    judged = Judged()
    if config.judging:
        told = bar("fits of the verdict, cross-validated")
        judged = judge_by(read.also, rollouts.rewards, rollouts.prompt, spec, progress=told)
        about["verdict"] = judged.numbers
    head = SuccessHead(fit.weight, spec, made_by(model, tokenizer), about, judged.verdict)
    path = head.save(config.out)
    kept.clear()
    replaced = before if before is not None and before.digest != head.digest else None
    return Fitted(path, rollouts, head, fit, len(read.owner), judged, replaced)
