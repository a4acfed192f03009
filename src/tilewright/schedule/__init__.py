"""Networks on machines with many engines: nodes, their prices, allocations and schedules."""
