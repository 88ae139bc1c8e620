"""From scores to distinct prompts."""

from rollwise.draws.keys import pack, rank_of_fewest, rank_of_scores, ties
from rollwise.draws.tree import GroupedMaxTree, MaxTree, SumTree

__all__ = ["GroupedMaxTree", "MaxTree", "SumTree", "pack", "rank_of_fewest", "rank_of_scores", "ties"]
