"""What the gateway answers. Fields that a newer gateway adds are ignored; tests compare these with its description."""
