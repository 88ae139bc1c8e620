"""Stands in for Trinity-RFT 0.6.0: what its scheduler does with one task set's selector."""

import importlib
from types import SimpleNamespace

SELECTOR_METRIC = "selector"


class TasksetScheduler:
    def __init__(self, explorer_state, config):
        module, name = config.selector.selector_type.rsplit(".", 1)
        source = SimpleNamespace(dataset=config.rows, dataset_size=len(config.rows))
        self.selector = getattr(importlib.import_module(module), name)(source, config.selector)
        self.selector.load_state_dict(explorer_state.get("taskset_states", [{"current_index": 0}])[0])
        self.batch_size = config.batch_size

    async def read(self):
        indices = self.selector.get_indices(self.batch_size)
        return [SimpleNamespace(index={"index": int(i), "taskset_id": 0}) for i in indices]

    def feedback(self, pipeline_metrics):
        if SELECTOR_METRIC not in pipeline_metrics:
            return
        for kwargs in pipeline_metrics.pop(SELECTOR_METRIC).values():
            self.selector.feedback(**kwargs)

    def state_dict(self):
        return [self.selector.state_dict()]
