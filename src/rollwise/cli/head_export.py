"""`rollwise head export`: a model's folder with the head in its vocabulary, and a recipe for servers."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise head export head.safetensors --rollouts rollouts/train --out served
  rollwise head export head.safetensors --rollouts rollouts/train --out served --resize     too few free rows: add some
  rollwise head export head.safetensors --model path/or/hub-id --out served                 unchecked, no safety net

OUT gets the model, its tokenizer, success_head/head.safetensors, serving.json and README.md (the recipe for vLLM).
Rollouts give the hidden states on which what was written is checked. `rollwise bestof` needs no export: it reads HEAD.
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head export HEAD.safetensors --out DIR [--rollouts ROLLOUTS] [--model M] [--resize]",
        description="Write a head into rows of the output embeddings that no token names. All other rows, and the\n"
        "logits of all tokens, stay what they are, to the bit.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("head", metavar="HEAD", type=str, help="a file of `rollwise head fit`")
    add("--out", type=str, required=True, help="a new folder")
    add("--rollouts", type=str | None, default=None, help="a folder of `rollwise rollouts`, to check with")
    add("--model", type=str | None, default=None, help="folder or hub id; by default who made the rollouts")
    add("--resize", action="store_true", help="add rows, if too few are free")
    add(
        "--margin",
        type=float,
        default=12.0,
        help="nats that the head's rows are to stay below the tokens'; 0 for not; costs precision in bfloat16",
    )
    add("--sample", type=int, default=64, help="how many of the rollouts are read")
    return parser


def run(options: Namespace) -> int:
    """Write the folder, and say what it holds."""
    from rollwise.cli.progress import Bar
    from rollwise.errors import ConfigError
    from rollwise.inference.files.model_of_rollouts import model_of
    from rollwise.inference.files.rollout_set import RolloutSet
    from rollwise.inference.head.fitted_on import check_weights
    from rollwise.inference.head.head import SuccessHead
    from rollwise.inference.serving.export import export_head
    from rollwise.models import is_embedded
    from rollwise.sampling.setting import load_model

    head, given, name = SuccessHead.load(options.head), options.get("rollouts"), options.get("model")
    sequences: list[list[int]] = []
    if given is not None:
        rollouts = RolloutSet.read(given)
        with Bar("warm start") as bar:
            model, tokenizer, _ = model_of(rollouts, name, progress=bar.update)
        every = max(1, len(rollouts) // max(1, options.get("sample", 64)))
        sequences = rollouts.sequences[::every]
    elif name is None or is_embedded(name):
        raise ConfigError("which model? give --rollouts (their model is taken), or --model with a folder or hub id")
    else:
        model, tokenizer = load_model(name, None)
    head.check(model, tokenizer)
    check_weights(head, model)
    margin = options.get("margin", 12.0)
    done = export_head(
        model, tokenizer, head, options.out, sequences=sequences, margin=margin or None,
        resize=bool(options.get("resize")),
    )  # fmt: skip
    added = f", {done.resized} of them added" if done.resized else ""
    say(f"ids {done.start:,} to {done.start + done.size - 1:,} of {done.rows:,} rows{added}\n")
    if done.check is None:
        say("nothing was checked; give --rollouts to check the rows, and for the safety net\n")
    else:
        say(
            f"on {done.check.positions:,} positions: value as in the head's file within {done.check.value_error:.1e}; "
            f"mass of the rows if not masked {done.check.mass:.1e}, at most {done.check.greatest_mass:.1e}\n"
        )
    say(f"{done.path}: the model, its tokenizer, success_head/head.safetensors, serving.json, README.md\n")
    return 0
