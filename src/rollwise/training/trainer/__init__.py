"""TRL's trainers with a curriculum: mixins, checkpoints, data set."""
