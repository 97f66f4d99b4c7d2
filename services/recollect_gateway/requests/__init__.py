"""Requests as clients send them: lenient arguments, days and zones, forms, and requests sent again."""
