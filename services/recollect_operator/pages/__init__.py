"""The pages of operators under `/operator`, in the look of the console, over the use cases of the operator API.

They belong to this process, since the gateway's role must not see across tenants (ADR 3). An operator signs in with a
key, which begins a session of an hour (`access`). Nothing here needs a script but the times, which are then in the
reader's zone.

To add a page: a `Controller` whose handlers return `render(…)`, in `routes.PAGES`; its entry in `navigation.ENTRIES`;
a test in tests/integration/operator/test_operator_pages.py, and its step in tests/verify/test_operator_pages.py. A form
goes to a `@post` handler that reads `field(request, "name")` and returns `go(…, done="…")`. What cannot be undone asks
for the tenant's slug.
"""
