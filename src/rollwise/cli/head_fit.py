"""`rollwise head fit`: from rollouts to a head's file."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.inference.fitting.fit_config import FitConfig
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise head fit rollouts/train --out head.safetensors
  rollwise head fit rollouts/a rollouts/b --out head.safetensors      several folders of the same tokenizer
  rollwise head fit rollouts/train --rewards [0,0.1,1] --edges paper --out three.safetensors
  rollwise head fit rollouts/train --states structured --out structured.safetensors     incoherent, coherent, correct
  rollwise head fit rollouts/train --states structured --coherent judge.py:coherent --out structured.safetensors
                                                                      any task: a function of yours decides
  rollwise head fit rollouts/train --num_prompts [64,128,256] --out head.safetensors
                                                                      three heads, for `rollwise head matrix`
  rollwise head fit rollouts/train --verdict false --out head.safetensors     the paper's head, without our verdict
  rollwise head fit rollouts/train --method paper --out paper.safetensors     the paper's optimiser, to compare with
  rollwise head fit rollouts/train --max_positions 20000 --out head.safetensors     less memory and time

The fit is solved to convergence; the command says how far it is at most from the best head.
After a kill or Ctrl-C while it reads, the same command goes on where it stopped (OUT.part holds what was read).
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head fit ROLLOUTS... --out HEAD.safetensors [--model M] [--OPTION VALUE ...]",
        description="Fit a success head: multinomial logistic regression on the model's last hidden states.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("rollouts", metavar="ROLLOUTS", nargs="+", type=str, help="folders of `rollwise rollouts`")
    parser.add_class_arguments(FitConfig, as_group=False, skip={"rollouts"})
    return parser


def run(options: Namespace) -> int:
    """Fit, save and say how good it is."""
    from rollwise.cli.progress import Bars
    from rollwise.inference.fitting.fit_run import run_fit

    config = FitConfig(**options.as_dict())
    for one in config.each:
        with Bars() as bars:
            fitted = run_fit(one, bars.of)
        say(f"{fitted.words()}{fitted.path}\n")
    return 0
