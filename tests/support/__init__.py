"""What tests share: servers, agents, clocks, laws, and ways to look at what was done."""
