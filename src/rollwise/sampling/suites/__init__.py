"""The data sets of the papers, as presets of `--data` and `--eval_data`."""
