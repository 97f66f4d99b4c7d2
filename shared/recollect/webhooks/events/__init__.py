"""Events: what happened since a webhook was last told, found in what is stored anyway."""
