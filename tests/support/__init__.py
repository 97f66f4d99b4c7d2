"""Code that tests share: servers, agents, clocks, invariants, and ways to observe what happened."""
