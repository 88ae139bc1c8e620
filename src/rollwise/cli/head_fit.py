"""`rollwise head fit`: from rollouts to a head's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.errors import ConfigError
from rollwise.terminal import say

if TYPE_CHECKING:
    import torch

    from rollwise.inference.files.rollout_set import RolloutSet
    from rollwise.inference.head.spec import HeadSpec
    from rollwise.inference.head.verdict import Verdict

_EXAMPLES = """
examples:
  rollwise head fit rollouts/train --out head.safetensors
  rollwise head fit rollouts/a rollouts/b --out head.safetensors      several folders of the same tokenizer
  rollwise head fit rollouts/train --rewards [0,0.1,1] --edges paper --out three.safetensors
  rollwise head fit rollouts/train --states structured --out structured.safetensors     incoherent, coherent, correct
  rollwise head fit rollouts/train --verdict false --out head.safetensors     the paper's head, without our verdict
  rollwise head fit rollouts/train --method paper --out paper.safetensors     the paper's optimiser, to compare with
  rollwise head fit rollouts/train --max_positions 20000 --out head.safetensors     less memory and time

It is solved to convergence, and says how far from the best head it is at most.
Killed or interrupted while it reads, the same command goes on where it stopped (OUT.part holds what was read).
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head fit ROLLOUTS... --out HEAD.safetensors [--model M] [--OPTION VALUE ...]",
        description="Fit a success head: multinomial logistic regression on the model's last hidden states.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("rollouts", metavar="ROLLOUTS", nargs="+", type=str, help="folders of `rollwise rollouts`")
    add("--out", type=str, required=True, help="the file to write")
    add("--model", type=str | None, default=None, help="folder, hub id or embedded; by default who made the rollouts")
    add("--method", type=Literal["convex", "paper"], default="convex", help="solved, or the paper's optimiser")
    add(
        "--rewards", type=list[float] | None, default=None,
        help="reward states, rising; by default the distinct rewards there are",
    )  # fmt: skip
    add(
        "--states", type=Literal["rewards", "structured"], default="rewards",
        help="what the reward states are: the rewards there are, or the paper's incoherent 0, coherent 0.1, correct 1 "
        "(Countdown alone)",
    )  # fmt: skip
    add(
        "--least_share", type=float | None, default=None,
        help="of the rollouts that each structured state must hold; 0.15 by default",
    )  # fmt: skip
    add(
        "--edges", type=list[int] | Literal["paper"] | None, default=None,
        help="edges of the bins of remaining tokens; by default 7 bins up to the longest rollout",
    )  # fmt: skip
    add(
        "--verdict", type=bool, default=True,
        help="also fit what finished candidates are judged by; false for the paper's value_end (convex)",
    )  # fmt: skip
    add("--l2", type=float, default=1e-4, help="factor of the squared norm (convex)")
    add(
        "--weighting", type=Literal["position", "rollout"], default="position",
        help="every position counts alike, or every rollout (convex)",
    )  # fmt: skip
    add("--max_positions", type=int, default=100_000, help="use a uniform sample of at most this many positions")
    add("--seed", type=int, default=0, help="of that sample, and of the paper's order")
    return parser


def run(options: Namespace) -> int:
    """Fit, save and say how good it is."""
    from rollwise.cli.progress import Bar
    from rollwise.inference.files.kept_batches import KeptBatches, pass_facts
    from rollwise.inference.files.model_of_rollouts import model_of
    from rollwise.inference.files.rollout_set import RolloutSet
    from rollwise.inference.head.fitted_on import PROMPT_HASHES, prompt_hashes, prompts_of
    from rollwise.inference.head.fitting import fit_head, fit_paper, position_weights
    from rollwise.inference.head.head import SuccessHead
    from rollwise.inference.head.hidden import gather_states
    from rollwise.inference.head.structured import LEAST_SHARE, STATES, structured
    from rollwise.inference.head.verdict import window_means
    from rollwise.models.identity import made_by

    rollouts = RolloutSet.read(options.rollouts)
    if options.get("states", "rewards") == "structured":
        if options.get("rewards") is not None:
            raise ConfigError("states 'structured' are 0, 0.1 and 1: leave out --rewards, or --states")
        options.rewards = list(STATES)
        least = options.get("least_share")
        rollouts = structured(rollouts, least_share=LEAST_SHARE if least is None else least)
    elif options.get("least_share") is not None:
        raise ConfigError("least_share is of structured states: add --states structured, or leave it out")
    spec = _spec(rollouts, options.get("rewards"), options.get("edges"))
    method, weighting = options.get("method", "convex"), options.get("weighting", "position")
    judging = method == "convex" and options.get("verdict", True)
    seed, most = options.get("seed", 0), options.get("max_positions", 100_000)
    with Bar("warm start") as bar:
        model, tokenizer, source = model_of(rollouts, options.get("model"), progress=bar.update)
    # Neither --rewards nor --edges nor --l2 decide what is read: a killed fit goes on with others too.
    facts = pass_facts(model, rollouts, max_positions=most, seed=seed, judging=judging)
    kept = KeptBatches(f"{options.out}.part", facts)
    with Bar("rollouts read") as bar:
        states, owner, remaining, ends = gather_states(
            model,
            rollouts,
            max_positions=most,
            seed=seed,
            progress=bar.update,
            also=window_means if judging else None,
            kept=kept,
        )
    labels = spec.labels(remaining, rollouts.rewards[owner])
    if method == "paper":
        fit = fit_paper(states, labels, spec, rollouts=owner, seed=seed)
    else:
        weights = position_weights(owner, weighting)
        with Bar("rounds of the fit, at most") as bar:
            fit = fit_head(states, labels, spec, l2=options.get("l2", 1e-4), weights=weights, progress=bar.update)
    about: dict[str, Any] = {
        "fit": fit.to_dict(),
        "weighting": weighting if method == "convex" else "position",
        "positions": len(labels),
        "prompts": len(rollouts.ids),
        "rollouts": len(rollouts),
        "folders": list(options.rollouts),
        "model": source,
        "configs": rollouts.configs,
        PROMPT_HASHES: prompt_hashes(prompts_of(rollouts)),
    }
    verdict, judged = None, ""
    if judging:
        verdict, about["verdict"], judged = _verdict(ends, rollouts, spec)
    path = SuccessHead(fit.weight, spec, made_by(model, tokenizer), about, verdict).save(options.out)
    kept.clear()
    if method == "convex":
        proof = (
            f"within {fit.gap:.1e} nats of the best head"
            if fit.converged
            else f"NOT CONVERGED, up to {fit.gap:.1e} nats from the best head: raise --l2"
        )
    else:
        proof = "the paper's recipe stops after two epochs, wherever that is"
    say(
        f"{len(rollouts.ids):,} prompts, {len(rollouts):,} rollouts of mean reward {rollouts.rewards.mean():.3f}"
        f"{f' ({rollouts.unscored:,} without a reward left out)' if rollouts.unscored else ''}, "
        f"{len(labels):,} of {rollouts.lengths.sum():,} positions\n"
        f"reward states {list(spec.rewards)}, length edges {list(spec.edges)}: {spec.size} rows of {states.shape[1]}\n"
        f"cross-entropy {fit.cross_entropy:.4f} nats where it was fitted, {fit.baseline:.4f} without looking; "
        f"gradient {fit.gradient_norm:.1e} after {fit.iterations} iterations, {proof}\n"
        f"{judged}{path}\n"
    )
    return 0


def _verdict(
    ends: list[torch.Tensor], rollouts: RolloutSet, spec: HeadSpec
) -> tuple[Verdict | None, dict[str, Any], str]:
    """The verdict, if it predicts anything on prompts held out; its numbers; and what to say of it."""
    from rollwise.inference.head.verdict import why_not_held_out

    if why := why_not_held_out(rollouts.rewards, rollouts.prompt, spec):
        said = "finished candidates go by value_end; more prompts would help"
        return None, {"left_out": why}, f"verdict: none, as it can't be cross-validated: {why}; {said}\n"
    import torch

    from rollwise.cli.progress import Bar
    from rollwise.inference.head.verdict import choose_l2, fit_verdict

    means = torch.stack(ends)
    with Bar("fits of the verdict, cross-validated") as bar:
        choice = choose_l2(means, rollouts.rewards, rollouts.prompt, spec, progress=bar.update)
    verdict, fit = fit_verdict(means, rollouts.rewards, spec, l2=choice.l2)
    numbers = fit.to_dict() | {"held_out": choice.held_out}
    said = (
        f"verdict: {choice.held_out:.4f} nats a rollout on prompts held out, {fit.baseline:.4f} without looking, "
        f"at l2 {choice.l2:g}\n"
    )
    if choice.held_out < fit.baseline:
        return verdict, numbers, said
    said += "so there is none: finished candidates go by value_end; more prompts would help\n"
    return None, numbers, said


def _spec(rollouts: RolloutSet, rewards: list[float] | None, edges: list[int] | str | None) -> HeadSpec:
    from rollwise.inference.head.spec import PAPER_EDGES, HeadSpec, edges_for, reward_states_of

    states = reward_states_of(rollouts.rewards.tolist(), most=8 if rewards is None else len(rollouts))
    if edges == "paper":
        chosen: tuple[int, ...] = PAPER_EDGES
    else:
        chosen = edges_for(int(rollouts.lengths.max())) if edges is None else tuple(int(edge) for edge in edges)
    return HeadSpec(rewards=states if rewards is None else tuple(rewards), edges=chosen)
