"""What goes out: requests to addresses that others chose, look-ups in the DNS, and mail.

`private_addresses` has the rule that nothing is sent to a private address, by a webhook or otherwise; `http_client`
sends the requests and applies it. `chat_completions` asks language models, `txt_records` the DNS, `mail` sends email.
`failure_reasons` and `retry_after` read what went wrong.
"""
