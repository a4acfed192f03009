"""When everything of a tiled plan runs: one clock, from which predicted cycles and the drawn timeline come."""
