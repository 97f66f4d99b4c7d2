"""What the HTTP services share: the server, checks of requests, answers, and OpenAPI documents."""
