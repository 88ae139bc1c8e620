"""`rollwise simulate`: compare curricula on a learner without a model, or on a logged run."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.errors import ConfigError
from rollwise.progress_bar import progress_bar
from rollwise.runs.past_columns import Columns
from rollwise.terminal import make_console, say

_DESCRIPTION = """Compare curricula on a SIMULATED learner (item response theory), or on the log of a uniform run:
ten methods on a million prompts in minutes. It shows how methods behave, not what they are worth for a language
model; docs/simulate.md says how far to trust it."""

_EXAMPLES = """
examples:
  rollwise simulate --template > my.yaml                  every key with its default, commented
  rollwise simulate my.yaml                               methods x seeds, into runs/simulate-my; resumes it, too
  rollwise simulate examples/simulate/revisit.yaml --out runs/revisit --jobs 2
  rollwise simulate --replay runs/uniform                 a finished run with --curriculum uniform as the world
  rollwise simulate --replay past.jsonl --reward_column score    past rollouts, as `rollwise profile --rollouts` reads
  rollwise simulate --replay runs/uniform --shadow        how well estimators predict each step of that run

OUT gets results.json, results.csv, curves.png, and a file for each run in runs/. All of it is SIMULATED, and says so.
With --shadow it gets shadow.json, shadow.csv and shadow.png; CONFIG's methods are the estimators, and each must keep a
belief about every prompt.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        usage="rollwise simulate CONFIG [--out OUT] [--jobs JOBS] | --replay RUN | --template",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "config", nargs="?", type=str, help="YAML file with a world, methods and seeds; see --template."
    )
    parser.add_argument(
        "--out", type=str | None, default=None, help="Folder of the results; by default runs/simulate-CONFIG."
    )
    parser.add_argument(
        "--jobs", type=int | None, default=None, help="Number of processes; the results do not depend on it."
    )
    parser.add_argument(
        "--replay",
        type=str | None,
        default=None,
        help="Replay this log: the folder of a uniform run, or past rollouts; CONFIG is optional then.",
    )
    parser.add_class_arguments(Columns, as_group=False)
    parser.add_argument(
        "--shadow",
        action="store_true",
        help="With --replay: estimators follow the run and predict each step; shows how well, and at what cost.",
    )
    parser.add_argument("--template", action="store_true", help="Print a config with every default, and comments.")
    return parser


def resolve(options: Namespace) -> dict[str, Any]:
    """The config as a file of its own, with every default."""
    values: dict[str, Any] = _config(options).to_dict()
    return values


def schema() -> dict[str, Any]:
    """The JSON Schema of a config."""
    from rollwise.simulation import config, making, methods, template, world

    whole, meanings = config.SimulateConfig, template.meanings
    parts = {
        "population": making.Population,
        "learner": world.Learner,
        "blocked": config.Blocked,
        "replay": config.Replay,
        "methods": methods.Method,
    }
    made = _schema_of(whole, meanings(whole), skip={*parts, "seeds"})
    inner: dict[str, Any] = {name: _schema_of(kind, meanings(kind)) for name, kind in parts.items()}
    inner["methods"] = {"anyOf": [{"type": "object", "additionalProperties": inner["methods"]}, {"type": "string"}]}
    inner["replay"] = {"anyOf": [inner["replay"], {"type": "string"}]}
    seeds = {"type": "array", "items": {"type": "integer", "minimum": 0}}
    inner["seeds"] = {"anyOf": [seeds, {"type": "integer", "minimum": 1}], "default": 5}
    for name, value in inner.items():
        made["properties"][name] = {**value, "description": meanings(whole)[name]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _schema_of(kind: type, meanings: dict[str, str], skip: set[str] | None = None) -> dict[str, Any]:
    """The schema of a dataclass, each field with its meaning."""
    from rollwise.cli.schema import parser_schema

    parser = command_parser()
    parser.add_class_arguments(kind, as_group=False, skip=skip or set())
    made = parser_schema(parser)
    for name, value in made["properties"].items():
        value["description"] = meanings.get(name, "")
    return {key: value for key, value in made.items() if key != "$schema"}


def _config(options: Namespace) -> Any:
    from rollwise.simulation import config, shadow

    path, replay = options.get("config"), options.get("replay")
    if path is None and replay is None:
        raise ConfigError("simulate needs a CONFIG (rollwise simulate --template > my.yaml makes one), or --replay RUN")
    more = {name: options.get(name) for name in ("jobs", "replay") if options.get(name) is not None}
    columns = {f.name: options.get(f.name) for f in fields(Columns) if options.get(f.name) is not None}
    if columns and replay is None:
        raise ConfigError(f"--{next(iter(columns))} names a column of past rollouts; give them with --replay FILE")
    if columns:
        more["replay"] = {"run": replay, "columns": columns}
    if options.get("shadow") and path is None:
        more |= {"methods": shadow.ESTIMATORS, "seeds": 1}
    made = config.SimulateConfig.from_dict(more) if path is None else config.SimulateConfig.from_file(path, **more)
    if options.get("shadow") and made.replay is None:
        raise ConfigError("--shadow follows the log of a uniform run; give it with --replay RUN, or replay in CONFIG")
    return made


def run(options: Namespace) -> int:
    """Simulate what is not there yet, and show the table."""
    from rollwise.simulation import shadow, template

    if options.get("template"):
        say(template.template())
        return 0
    config, follows = _config(options), bool(options.get("shadow"))
    place = Path(options.get("config") or options.replay).resolve()
    name = f"{'shadow' if follows else 'simulate'}-{place.name if place.is_dir() else place.stem}"
    out = Path(options.get("out") or f"runs/{name}")
    try:
        if follows:
            _shadow(config, out, shadow)
        else:
            _simulate(config, out)
    except KeyboardInterrupt:
        kept = "" if follows else "; finished runs are kept, and the same command goes on"
        say(f"rollwise: interrupted{kept}\n", error=True)
        return 130
    return 0


def _simulate(config: Any, out: Path) -> None:
    from rollwise.simulation import runs, table

    def draw() -> Path:
        from rollwise.simulation.curves import draw_curves

        return draw_curves(config, found, out)

    with _Progress(len(config.methods) * len(config.seeds)) as progress:
        found = runs.run_all(config, out, on_run=progress.done)
    table.write_results(config, found, out)
    _show(table.make_table(config, found), f"SIMULATED: {out}/results.json, results.csv", draw)


def _shadow(config: Any, out: Path, shadow: Any) -> None:
    shadow.begin_shadow(config, out)
    with _Progress(len(config.methods) * len(config.seeds), "shadow") as progress:
        followed, left_out = shadow.follow_all(config, on_run=progress.done)
    shadow.write_shadow(config, followed, left_out, out)
    table = shadow.shadow_table(followed, left_out)
    _show(table, f"{out}/shadow.json, shadow.csv", lambda: shadow.draw_shadow(followed, out))


def _show(table: Any, files: str, draw: Any) -> None:
    """The table, and where the files are; with the figure's, if it can be drawn."""
    console = make_console()
    if not console.is_terminal:
        console = make_console(width=200)  # a log file has no width of its own
    console.print(table)
    try:
        drawn = f" and {draw().name}"
    except ImportError:
        drawn = '; for curves: pip install "rollwise[report]"'
    console.print(f"{files}{drawn}", highlight=False, soft_wrap=True)


class _Progress:
    """A bar over runs on a terminal; elsewhere a line a run."""

    def __init__(self, total: int, title: str = "SIMULATED") -> None:
        self.console, self.total, self.count, self.title = make_console(stderr=True), total, 0, title
        self.bar = progress_bar(self.console, note="last", disable=not self.console.is_terminal)
        self.task = self.bar.add_task(title, total=total, last="")

    def __enter__(self) -> _Progress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def done(self, method: str, seed: int, kept: bool) -> None:
        """A run is there: new, or from before."""
        self.count += 1
        last = f"{method}, seed {seed}{' (was there)' if kept else ''}"
        self.bar.update(self.task, completed=self.count, last=last)
        if not self.console.is_terminal:
            self.console.print(
                f"{self.title} {self.count}/{self.total}: {last}", markup=False, highlight=False, soft_wrap=True
            )
