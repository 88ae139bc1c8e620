"""Makes the starting policies of the plans in this folder; what is there already is kept.

    python examples/evidence/starts.py small                  # those of small/: twelve minutes of a core
    python examples/evidence/starts.py                        # all of them, up to 11.5 million parameters: hours
    python examples/evidence/starts.py --device cuda          # all of them on a GPU: minutes, and other digits

Three of each, by seeds 0, 1 and 2, in `examples/evidence/starts`. A plan gives them to its runs by seed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LEVELS = {"levels": [1, 2, 3]}
OPTIONS = {
    "reversal": {},
    "countdown": {**LEVELS, "style": "compact", "demo_accuracy": 0.15},
    "arc-1d": LEVELS,
    "mixed": {"parts": {"countdown": {**LEVELS, "demo_accuracy": 0.4}, "zebra": LEVELS, "arc-1d": LEVELS}},
}
SIZES = {
    "": {},  # the embedded policy's own: 0.34 million
    "-1m": {"hidden_size": 160, "num_layers": 4, "intermediate_size": 432, "learning_rate": 0.003},
    "-3m": {"hidden_size": 256, "num_layers": 4, "intermediate_size": 688, "learning_rate": 0.002},
    "-11m": {"hidden_size": 384, "num_layers": 6, "num_heads": 6, "intermediate_size": 1024, "learning_rate": 0.001},
}
SMALL = [("reversal", ""), ("countdown", ""), ("reversal", "-1m")]
EVERY = [(task, size) for size in SIZES for task in ("reversal", "countdown")] + [("arc-1d", ""), ("mixed", "")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="?", choices=["small", "all"], default="all", help="by default all")
    parser.add_argument("--device", default="cpu", help="where the warm starts run")
    chosen = parser.parse_args()
    for task, size in SMALL if chosen.which == "small" else EVERY:
        given = [word for name, value in SIZES[size].items() for word in (f"--{name}", str(value))]
        command = [HERE.parent / "compare/make_starts.py", task, "--options", json.dumps(OPTIONS[task]), *given]
        command += ["--seeds", "0", "1", "2", "--name", f"{task}{size}", "--out", HERE / "starts"]
        command += ["--device", chosen.device]
        subprocess.run([sys.executable, *map(str, command)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
