"""`rollwise launch`: the options of `rollwise train`, in the command of an engine."""
