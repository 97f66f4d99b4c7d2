"""Events: what happened since the last delivery to a webhook, found in what is stored anyway."""
