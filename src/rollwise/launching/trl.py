"""A run of TRL on several processes: `rollwise train` under torchrun."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.launching.command import Command, Extra, Machines

_THREADS = "OMP_NUM_THREADS"


def trl_command(train: Sequence[str | Path], machines: Machines, extra: Extra) -> Command:
    """The command that trains with `rollwise train`, in one process without torchrun.

    Raises:
        ConfigError: an option that torchrun can't have, such as one of verl's keys.
    """
    job = ["-m", "rollwise", "train", *map(str, train), *extra.overrides]
    if machines.processes == 1 and not extra.options:
        return Command([sys.executable, *job])
    nodes = {} if machines.nnodes == 1 else {"nnodes": machines.nnodes}
    standalone = ["--standalone"] if machines.nnodes == 1 and not extra.options else []
    words = [sys.executable, "-m", "torch.distributed.run", *standalone, "--nproc_per_node", str(machines.nproc)]
    return Command([*words, *_flags({**nodes, **extra.options}), *job], {_THREADS: os.environ.get(_THREADS, "1")})


def _flags(options: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            raise ConfigError(
                f"engine_options.{name} is {value!r:.60}, but with --engine trl they are options of torchrun, such as "
                "max_restarts: 3; leave it out, or give --engine verl if it is verl's"
            )
        if value is not None and value is not False:  # torchrun's switches are there or not
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words
