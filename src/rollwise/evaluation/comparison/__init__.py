"""Methods x seeds compared at equal compute."""
