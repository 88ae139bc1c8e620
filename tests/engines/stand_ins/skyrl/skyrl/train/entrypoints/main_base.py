"""Stands in for SkyRL 0.3.0 and 0.4.0: what an entry point overrides."""


class BasePPOExp:
    def __init__(self, cfg):
        self.cfg = cfg

    def get_train_dataset(self):
        raise NotImplementedError

    def get_trainer(self, *arguments, **named):
        raise NotImplementedError
