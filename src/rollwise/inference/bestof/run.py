"""`rollwise bestof`: prompts in, chosen answers with their cost out.

The folder holds `config.yaml`, the options that decide the answers, `model.json`, facts of the model, and
`answers.jsonl`, a line for each prompt. Killed at any moment, the same command goes on with the prompts that are
missing, and gives the same answers as if it had not been: a candidate's random numbers depend only on seed,
prompt and index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.decoders import counts_of, make_decoder
from rollwise.inference.bestof.job import Job, read_job
from rollwise.inference.bestof.lines import Line, line_of, notes_after, notes_before
from rollwise.inference.serving.server_decoder import ServerDecoder
from rollwise.inference.serving.server_stream import Spent
from rollwise.sampling.folder import SampleFolder
from rollwise.sampling.progress import SamplingBar
from rollwise.sampling.setting import say_stop
from rollwise.terminal import make_console


@dataclass(frozen=True)
class Answers:
    """What `rollwise bestof` gave.

    Attributes:
        path: The folder.
        lines: One for each prompt, in the order of the sample.
        wall_s: Seconds of decoding in this call.
        decoded: Prompts decoded in this call.
        notes: What one should know of them, in sentences.
        spent: What a server took in this call; None without one.
        failures: Prompt id -> why it has no answer; the same command asks again.
    """

    path: Path
    lines: list[Line]
    wall_s: float
    decoded: int
    notes: tuple[str, ...] = ()
    spent: Spent | None = None
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def accuracy(self) -> float | None:
        """Mean reward of the chosen candidates that could be scored; None where nothing is."""
        return float(np.mean(self.scored)) if self.scored else None

    @property
    def scored(self) -> list[float]:
        """The rewards of the chosen candidates that have one."""
        return [reward for line in self.lines for reward in line["rewards"] if reward is not None]

    def words(self, policy: str) -> str:
        """Some lines on how good the answers of this policy are, and what they cost."""
        names = ("row_forwards", "steps", "complete")
        mean = {name: np.mean([line[name] for line in self.lines]) for name in names}
        some = f" of the {known} that could be scored" if (known := len(self.scored)) < len(self.lines) else ""
        scored = "" if self.accuracy is None else f"mean reward {self.accuracy:.3f}{some}; "
        took = f"; {self.decoded / self.wall_s:.1f} prompts a second" if self.decoded else ""
        notes = "".join(f"note: {note}\n" for note in self.notes)
        return (
            f"{len(self.lines):,} prompts, policy {policy}, {self._candidates(policy)}: {scored}"
            f"{mean['row_forwards']:.1f} row-forwards and {mean['steps']:.1f} steps a prompt, {mean['complete']:.1f} "
            f"candidates carried to the end{took}\n{'' if self.spent is None else self.spent.words()}{notes}"
            f"{self.path}: config.yaml, model.json, answers.jsonl\n"
        )

    def _candidates(self, policy: str) -> str:
        """How many each prompt may have: a policy may give some up, or never begin them."""
        counts = [line["k"] for line in self.lines]
        most = "" if policy == "none" else "at most "
        if len(set(counts)) == 1:
            return f"{most}{counts[0]} candidate{'s' if counts[0] > 1 else ''}"
        return f"{most}{np.mean(counts):.1f} candidates on average"


def run_bestof(config: BestOfConfig, *, console: Console | None = None) -> Answers:
    """Answer the prompts that have no answer yet in the folder.

    Raises:
        ConfigError: options that don't fit, a policy that can never act, a head of another model, or of other weights
            and no `transfer`, or a folder that was begun with others.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used. What was answered before is kept.
    """
    job = read_job(config)
    what = "a folder of `rollwise bestof`"
    folder = SampleFolder(config.folder, lines="answers.jsonl", what=what, command="bestof")
    folder.begin(job.decided())
    console = console or make_console(stderr=True)
    say_stop(config, job.task, console)
    done = folder.read_groups()
    missing = [row for row in job.rows if job.data.ids[row] not in done]
    made = Answers(folder.path, [], 0.0, 0)
    if missing:
        with SamplingBar(console) as bar:
            made = _answered(job, folder, missing, bar)
    done |= {line["id"]: line for line in made.lines}
    lines = [done[id_] for id_ in job.ids if id_ in done]
    notes = (*made.notes, *(notes_after(job, lines) if lines else ()))
    return replace(made, lines=lines, notes=notes)


def _answered(job: Job, folder: SampleFolder, missing: list[int], bar: SamplingBar) -> Answers:
    """Answer the prompts of the rows that are missing; each line is kept as soon as it is known."""
    decoder, facts = make_decoder(job, folder, bar.warmed)
    notes, counts = notes_before(job, decoder.tokenizer, facts), counts_of(job, decoder)
    row_of, before = {job.data.ids[row]: row for row in missing}, len(job.rows) - len(missing)
    if isinstance(decoder, ServerDecoder):
        decoder.resumed = before > 0
    ids, prompts = [job.data.ids[row] for row in missing], [job.data.prompts[row] for row in missing]
    results = decoder.decode(ids, prompts, job.policy, k=[counts[id_] for id_ in ids], answer=job.vote)
    states = () if decoder.signal is None else decoder.signal.states
    lines, tokens = list[Line](), 0
    bar.sampled(before, len(job.rows), tokens)
    for result in results:
        line = line_of(job, result, job.data.rows[row_of[result.id]], states)
        folder.append([line])
        lines.append(line)
        tokens += line["row_forwards"]
        bar.sampled(before + len(lines), len(job.rows), tokens)
    made = Answers(folder.path, lines, decoder.stats.wall_s, len(lines), tuple(notes))
    if isinstance(decoder, ServerDecoder):
        made = replace(made, spent=decoder.stats, failures=decoder.failures)
    return made
