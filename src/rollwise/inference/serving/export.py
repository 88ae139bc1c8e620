"""Write a head into free rows of a vocabulary, so that an unmodified server shows it: a model's folder and a recipe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollwise.errors import ConfigError
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.hidden import hidden_states, output_embeddings
from rollwise.inference.head.reserved import (
    check_linear_read,
    named_ids,
    reserve,
    suppress,
    unnamed_ids,
    vocabulary_rows,
    write_rows,
)
from rollwise.inference.head.scoring import check_width
from rollwise.inference.serving.readme import recipe
from rollwise.models.identity import model_facts, weights_digest
from rollwise.options import check_number
from rollwise.state import write_atomically

if TYPE_CHECKING:
    import torch

    from rollwise.inference.head.verdict import Verdict

SERVING_FILE, README_FILE = "serving.json", "README.md"
HEAD_FILE = "success_head/head.safetensors"
"""In a folder of its own: vLLM takes every .safetensors beside a model for its weights."""
MARGIN = 12.0
"""Nats by which the reserved rows' mass is to stay below that of the named ones: e^-12 is 6 in a million."""

_CHUNK = 2048


@dataclass(frozen=True)
class Check:
    """How the exported rows compare with the head's own file, on some hidden states.

    Attributes:
        positions: How many.
        value_error: Greatest difference of the value read from the rows, in the model's precision.
        mass: Mean probability of the reserved rows where a server forgets to mask them.
        greatest_mass: The greatest.
    """

    positions: int
    value_error: float
    mass: float
    greatest_mass: float


@dataclass(frozen=True)
class Export:
    """What was written.

    Attributes:
        path: The folder.
        start: Id of the first reserved row.
        size: How many: R * L of the head, then W * R of its verdict, if it has one.
        rows: Of the vocabulary now.
        resized: Rows that were added.
        margin: Of the gauge; None where there is none.
        check: None without sequences to check with.
    """

    path: Path
    start: int
    size: int
    rows: int
    resized: int
    margin: float | None
    check: Check | None


def export_head(
    model: Any,
    tokenizer: Any,
    head: SuccessHead,
    out: str | Path,
    *,
    sequences: Sequence[Sequence[int]] = (),
    margin: float | None = MARGIN,
    resize: bool = False,
) -> Export:
    """Write the head's rows into the model, in place, and save both with a recipe for servers.

    All other rows stay what they are, to the bit, and so do the logits of all tokens, whether embeddings are tied or
    not. Unnamed rows must be masked when serving; transformers' `generate` does, by the generation config saved here.
    As a safety net for who forgets, one vector is added to all reserved rows (a gauge: the softmax over them, and so
    the head, stays the same), chosen so that their mass is small on states like those given.

    Args:
        model: Changed in place.
        tokenizer: Its own.
        head: Fitted on this model.
        out: A new or empty folder.
        sequences: Tokens of some rollouts, prompt and completion: for the gauge, and to check what was written.
        margin: Of the gauge, in nats; None for none. Without sequences there is none. In bfloat16 it costs precision
            (three times the value error, in one measurement), which `Check` shows.
        resize: Add rows if too few are free.

    Raises:
        ConfigError: another model's head, too few rows, an architecture whose logits are not hidden state times row,
            or a folder that is not empty.
    """
    import torch

    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{str(folder)!r} is there already and not empty; give a new folder")
    head.check(model, tokenizer)
    check_width(head, int(output_embeddings(model).weight.shape[1]))
    check_linear_read(model, tokenizer)
    fitted_on = weights_digest(model)
    before = vocabulary_rows(model)
    own = head.weight.cpu().float()
    if head.verdict is not None:
        own = torch.cat([own, head.verdict.rows.cpu().float()])
    start = reserve(model, tokenizer, len(own), resize=resize)
    named = sorted(named_ids(tokenizer))
    rows = vocabulary_rows(model)
    states = _states(model, sequences)
    # Of rows that were added, some only round the number up: they are unnamed too, and get the gauge alone.
    spare = torch.zeros(rows - start - len(own) if rows > before else 0, head.hidden_size)
    block = torch.cat([own, spare])
    margin = None if states is None else margin
    if states is not None and margin is not None:
        check_number("margin", margin, low=0.0, high=100.0)
        block = block + gauge(states, block, _log_mass(model, states, named), margin)
    write_rows(model, start, block)
    check = None if states is None else check_rows(model, head, start, len(block), states, named)
    exported = Export(folder, start, len(own), rows, rows - before, margin, check)
    unnamed = unnamed_ids(model, tokenizer)
    suppress(model, unnamed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if head.model.get("weights_digest") == fitted_on:  # the rows are part of the weights now
        head = replace(head, model=head.model | {"weights_digest": weights_digest(model)})
    head.save(folder / HEAD_FILE)
    serving = serving_facts(exported, head, unnamed, model_facts(model, tokenizer))
    write_atomically(folder / SERVING_FILE, json.dumps(serving, indent=1).encode())
    write_atomically(folder / README_FILE, recipe(serving).encode())
    return exported


def gauge(states: torch.Tensor, weight: torch.Tensor, log_mass: torch.Tensor, margin: float) -> torch.Tensor:
    """One vector (H,) to add to all rows, after which their mass is e^-margin of the named ones' or less.

    The least of mean softplus(h u + s - t + margin) + 1e-5 |u|^2 over the states h, where s is the log of the rows'
    mass and t that of the named ones: it pushes where there is too much, and leaves alone where there is not.

    Args:
        states: (M, H).
        weight: (n, H) rows.
        log_mass: (M,) log of the summed exponentials of the named logits.
        margin: In nats.
    """
    import torch

    excess = (states @ weight.T).logsumexp(-1) - log_mass + margin
    u = torch.zeros(states.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([u], max_iter=300, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.softplus(states @ u + excess).mean() + 1e-5 * (u**2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    with torch.enable_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    return u.detach()


def check_rows(
    model: Any, head: SuccessHead, start: int, size: int, states: torch.Tensor, named: Sequence[int]
) -> Check:
    """Compare what the model's rows say on (M, H) states with what the head's own matrix says.

    `size` rows from `start` on were written; the head's are the first of them.
    """
    import torch

    module = output_embeddings(model)
    with torch.no_grad():
        given = states.to(module.weight)
        logits = torch.nn.functional.linear(given, module.weight[start : start + size]).float().cpu()
        read = head.spec.value(head.spec.joint(logits[:, : head.spec.size].numpy()))
        error = abs(read - head.value(states.float()).numpy()).max()
        mass = torch.sigmoid(logits.logsumexp(-1) - _log_mass(model, states, named))
    return Check(len(states), float(error), float(mass.mean()), float(mass.max()))


def serving_facts(exported: Export, head: SuccessHead, unnamed: list[int], facts: dict[str, Any]) -> dict[str, Any]:
    """All that a server's adapter needs, JSON-safe."""
    ids = list(range(exported.start, exported.start + exported.size))
    return {
        "format": "rollwise-serving-1",
        "spec": head.spec.to_dict(),
        "model": facts,
        "start": exported.start,
        "size": exported.size,
        "verdict": None if head.verdict is None else verdict_facts(head.verdict),
        "rows": exported.rows,
        "rows_added": exported.resized,
        "unnamed_ids": unnamed,
        "gauge_margin": exported.margin,
        "check": None if exported.check is None else asdict(exported.check),
        "vllm": {"logprob_token_ids": ids, "logit_bias": {str(id_): -100.0 for id_ in unnamed}},
    }


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    """What a server's adapter needs of the verdict besides its rows, JSON-safe."""
    return {"windows": list(verdict.windows), "bias": verdict.bias.tolist()}


def _states(model: Any, sequences: Sequence[Sequence[int]]) -> torch.Tensor | None:
    """(M, H) states along all the sequences."""
    import torch

    if not sequences:
        return None
    return torch.cat([own for _, own in hidden_states(model, sequences, [1] * len(sequences))])


def _log_mass(model: Any, states: torch.Tensor, named: Sequence[int]) -> torch.Tensor:
    """(M,) log of the summed exponentials of the named tokens' logits."""
    import torch

    module, parts = output_embeddings(model), []
    ids = torch.as_tensor(list(named), device=module.weight.device)
    with torch.no_grad():
        for start in range(0, len(states), _CHUNK):
            logits = module(states[start : start + _CHUNK].to(module.weight))
            parts.append(logits[:, ids].float().logsumexp(-1).cpu())
    return torch.cat(parts)
