"""Makes and runs examples/notebook.ipynb: `python benchmarks/notebook.py` (needs nbformat, nbclient, ipykernel)."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NOTEBOOK = Path(__file__).parents[1] / "examples/notebook.ipynb"
CELLS = [
    """# What a curriculum does

A simulation without a model, in seconds: 400 prompts whose pass rates we make up.
Three quarters can't be solved, and their category tells.
Two curricula ask for 16 prompts a step. A group of 8 rollouts teaches only if its rewards differ.""",
    """
import matplotlib.pyplot as plt
import numpy as np

import rollwise as rw

rng = np.random.default_rng(0)
records, pass_rates = [], {}
for i in range(400):
    hopeless = i % 4 != 0
    records.append({"id": f"p{i}", "prompt": f"problem {i}", "category": "foreign" if hopeless else "maths"})
    pass_rates[f"p{i}"] = 0.0 if hopeless else rng.uniform(0.1, 0.9)
""",
    """## Ask and tell

`ask` gives tickets: prompts to roll out now. `tell` takes their rewards.
With a real model the line in the middle generates and scores.""",
    '''
def run(curriculum, steps=40):
    """The share of groups with contrast, at each step."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(steps):
        tickets = curriculum.ask(16)
        groups = [rng.random(8) < pass_rates[ticket.prompt_id] for ticket in tickets]    # your model and reward
        curriculum.tell([rw.Outcome(t.id, rewards.astype(float)) for t, rewards in zip(tickets, groups)])
        shares.append(np.mean([0 < rewards.sum() < 8 for rewards in groups]))
    return np.array(shares)


pool = rw.PromptPool.from_records(records)
recommended = rw.Recommended(pool, seed=0)
shares = {"uniform": run(rw.Uniform(pool, seed=0)), "recommended": run(recommended)}
for name, found in shares.items():
    print(f"{name}: {found.mean():.0%} of the groups have contrast")
''',
    """The warning above is right: `foreign` gets almost nothing, because nothing of it can be solved.
With real data it would be a reason to look.

## The share of groups with contrast""",
    """
figure, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
for name, found in shares.items():
    ax.plot(np.arange(1, len(found) + 1), found, label=name)
ax.set(xlabel="step", ylabel="share with contrast", ylim=(0, 1.02))
ax.legend(frameon=False)
plt.show()
""",
    """## What it believes

`priors()` has the Beta prior of each category's prompts.
Few prompts of the hopeless category are still asked for, in case that changes.""",
    """
for group, (solved, failed) in recommended.priors().items():
    print(f"{group}: Beta({solved:.2f}, {failed:.2f}), mean {solved / (solved + failed):.2f}")
""",
    """**More groups with contrast need not make a better model.** Compare in real training: `rollwise compare my.yaml`.
A finished run opens in a notebook by `rw.load_run("runs/first")`.""",
]


def main() -> None:
    cells = [new_code_cell(text.strip()) if text.startswith("\n") else new_markdown_cell(text) for text in CELLS]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    notebook = new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    NotebookClient(notebook, timeout=120, record_timing=False, extra_arguments=["--log-level=ERROR"]).execute()
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, NOTEBOOK)
    print(f"{NOTEBOOK}: {NOTEBOOK.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
