"""What libraries do again at every step of a training, and what it costs in a process of tests."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any


def lighten() -> None:
    """Make the trainings of this process cheaper; call it when all is imported. Their results stay the same."""
    gc.collect()
    gc.freeze()  # accelerate collects garbage at the end of each training, and would read all modules each time
    accelerate = sys.modules.get("accelerate.utils.imports")
    if accelerate is not None:  # which reads the metadata of peft and others anew at each call
        accelerate._is_package_available = functools.cache(accelerate._is_package_available)  # type: ignore[attr-defined]
    torch = sys.modules.get("torch")
    if torch is not None and not torch.cuda.is_available():  # each seed is kept for later, with its call stack
        for device in (torch.cuda.random, torch.xpu.random, torch.mtia):
            device._lazy_call = lambda *_, **__: None


def without_figures(set_attribute: Callable[[Any, str, Any], None] = setattr) -> None:
    """Leave the figures out of this process' reports: to draw them takes several times as long as a toy's training."""
    # The modules that hold these functions by name are loaded before, or they would hold what is put in their place.
    import rollwise.reports.inference.consistency_page
    import rollwise.simulation.curves  # noqa: F401
    from rollwise.reports import figure_files

    set_attribute(figure_files, "save_figure", lambda spec, folder: None)
    set_attribute(figure_files, "inline_panels", lambda spec: ["<svg></svg>" for _ in spec.panels])
