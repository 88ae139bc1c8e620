"""Stands in for Trinity-RFT 0.6.0: the call surface of its selectors."""


class BaseSelector:
    def __init__(self, data_source, config):
        self.data_source = data_source
        self.config = config

    def get_indices(self, batch_size, return_extra_info=False):
        raise NotImplementedError

    def feedback(self, indices, values):
        raise NotImplementedError

    def state_dict(self):
        raise NotImplementedError

    def load_state_dict(self, state_dict):
        raise NotImplementedError
