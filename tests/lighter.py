"""What libraries do again at every step of a training, and what it costs in a process of tests."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def lighten() -> None:
    """Make the trainings of this process cheaper; call it when all is imported. Their results stay the same."""
    gc.freeze()  # else each full collection of garbage would read all modules
    os.fsync = lambda file: None  # milliseconds each; no test's folder has to outlive a power cut
    memory = sys.modules.get("accelerate.utils.memory")
    if memory is not None:  # which collects all garbage at the end of each training; what is young does
        memory.gc = SimpleNamespace(collect=functools.partial(gc.collect, 1))  # type: ignore[attr-defined]
    accelerate = sys.modules.get("accelerate.utils.imports")
    if accelerate is not None:  # which reads the metadata of peft and others anew at each call
        accelerate._is_package_available = functools.cache(accelerate._is_package_available)  # type: ignore[attr-defined]
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.1  # for 5 s a loader waits for a worker that is no more
    if torch is not None and not torch.cuda.is_available():  # each seed is kept for later, with its call stack
        for device in (torch.cuda.random, torch.xpu.random, torch.mtia):
            device._lazy_call = lambda *_, **__: None


def touch_figure(spec: Any, folder: Path) -> None:
    """In place of `save_figure`: the same files, empty."""
    for kind in ("png", "svg"):
        (folder / f"{spec.name}.{kind}").touch()


@contextmanager
def empty_files() -> Iterator[None]:
    """Figures are drawn on pages alone while this is open: to write each as PNG and SVG too takes longer."""
    from rollwise.reports import figure_files

    kept = figure_files.save_figure
    figure_files.save_figure = touch_figure
    try:
        yield
    finally:
        figure_files.save_figure = kept


def without_figures(set_attribute: Callable[[Any, str, Any], None] = setattr) -> None:
    """Leave the figures out of this process' reports: to draw them takes several times as long as a toy's training."""
    # The modules that hold these functions by name are loaded before, or they would hold what is put in their place.
    import rollwise.reports.inference.consistency_page
    import rollwise.simulation.curves  # noqa: F401
    from rollwise.reports import figure_files

    set_attribute(figure_files, "save_figure", lambda spec, folder: None)
    set_attribute(figure_files, "inline_panels", lambda spec: ["<svg></svg>" for _ in spec.panels])
