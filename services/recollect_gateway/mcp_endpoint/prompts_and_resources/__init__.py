"""What clients are offered beside tools: prompts, resources, their changes, and completion."""
