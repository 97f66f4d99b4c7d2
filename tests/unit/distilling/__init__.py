"""Rules of distilling."""
