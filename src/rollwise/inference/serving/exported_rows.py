"""The rows of an exported head: written, kept small by a gauge, and compared with the head's own file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rollwise.inference.head.head import SuccessHead, output_embeddings
from rollwise.inference.head.hidden import hidden_states
from rollwise.inference.head.reserved import named_ids, reserve, vocabulary_rows, write_rows
from rollwise.options import check_number

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

    def words(self) -> str:
        """Two lines: which rows were written, and how well they agree with the head's file."""
        added = f", {self.resized} of them added" if self.resized else ""
        rows = f"ids {self.start:,} to {self.start + self.size - 1:,} of {self.rows:,} rows{added}\n"
        if self.check is None:
            return f"{rows}nothing was checked; give --rollouts to check the rows, and for the safety net\n"
        return (
            f"{rows}on {self.check.positions:,} positions: value as in the head's file within "
            f"{self.check.value_error:.1e}; mass of the rows if not masked {self.check.mass:.1e}, at most "
            f"{self.check.greatest_mass:.1e}\n"
        )


def write_head(
    model: Any,
    tokenizer: Any,
    head: SuccessHead,
    folder: Path,
    sequences: Sequence[Sequence[int]],
    margin: float | None,
    resize: bool,
) -> Export:
    """Write the rows of the head and its verdict, and check them; see `export_head`."""
    before = vocabulary_rows(model)
    own = head.weight.cpu().float()
    if head.verdict is not None:
        own = torch.cat([own, head.verdict.rows.cpu().float()])
    start = reserve(model, tokenizer, len(own), resize=resize)
    named = sorted(named_ids(tokenizer))
    rows = vocabulary_rows(model)
    states = _states(model, sequences)
    # Of rows that were added, some only round the number up: they are unnamed too, and get the gauge only.
    spare = torch.zeros(rows - start - len(own) if rows > before else 0, head.hidden_size)
    block = torch.cat([own, spare])
    margin = None if states is None else margin
    if states is not None and margin is not None:
        check_number("margin", margin, low=0.0, high=100.0)
        block = block + gauge(states, block, _log_mass(model, states, named), margin)
    write_rows(model, start, block)
    check = None if states is None else check_rows(model, head, start, len(block), states, named)
    return Export(folder, start, len(own), rows, rows - before, margin, check)


def gauge(states: torch.Tensor, weight: torch.Tensor, log_mass: torch.Tensor, margin: float) -> torch.Tensor:
    """One vector (H,) to add to all rows, after which their mass is e^-margin of the named ones' or less.

    The least of mean softplus(h u + s - t + margin) + 1e-5 |u|^2 over the states h, where s is the log of the rows'
    mass and t that of the named ones: it acts only where there is too much mass.

    Args:
        states: (M, H).
        weight: (n, H) rows.
        log_mass: (M,) log of the summed exponentials of the named logits.
        margin: In nats.
    """
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
    module = output_embeddings(model)
    with torch.no_grad():
        given = states.to(module.weight)
        logits = torch.nn.functional.linear(given, module.weight[start : start + size]).float().cpu()
        read = head.spec.value(head.spec.joint(logits[:, : head.spec.size].numpy()))
        error = abs(read - head.value(states.float()).numpy()).max()
        mass = torch.sigmoid(logits.logsumexp(-1) - _log_mass(model, states, named))
    return Check(len(states), float(error), float(mass.mean()), float(mass.max()))


def _states(model: Any, sequences: Sequence[Sequence[int]]) -> torch.Tensor | None:
    """(M, H) states along all the sequences."""
    if not sequences:
        return None
    return torch.cat([own for _, own in hidden_states(model, sequences, [1] * len(sequences))])


def _log_mass(model: Any, states: torch.Tensor, named: Sequence[int]) -> torch.Tensor:
    """(M,) log of the summed exponentials of the named tokens' logits."""
    module, parts = output_embeddings(model), []
    ids = torch.as_tensor(list(named), device=module.weight.device)
    with torch.no_grad():
        for start in range(0, len(states), _CHUNK):
            logits = module(states[start : start + _CHUNK].to(module.weight))
            parts.append(logits[:, ids].float().logsumexp(-1).cpu())
    return torch.cat(parts)
