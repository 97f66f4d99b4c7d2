"""The web console: pages under `/app` for the people of a tenant, over the same use cases as `/v1`.

The gateway serves it (`routes.py`). A person is signed in by the gateway's sessions; whether they are a member of the
tenant in the address is checked before anything else (`access.py`). Pages are rendered on the server; htmx replaces
parts of them where scripts run.

To add a page `things` of a graph:

1. `pages/things.py`: `ThingPages`, a `Controller` with the path `/things`. Its handlers take
   `visit: NamedDependency[Visit]`, read inside `async with visit.reading("list_things") as view`, and return
   `render(visit, "things/list.html", …)`. A form goes to a `@post` handler that reads `visit.form`, changes by a use
   case or an operation of the gateway (`visit.call("…")`), and returns `visit.go("things", done="…")`; on an error of
   the input it renders the form again with `fault=…` and what was entered. No SQL, and no rule that is not of pages
   alone.
2. `templates/things/list.html` extends `frame.html`. Components are macros, such as `ui.table` (`/app/components` shows
   them). A part that htmx replaces is a `{% block results %}` with an element of that id: a request of htmx with that
   target gets the block alone.
3. `routes.py` lists the controller, and `navigation.py` has its entry in the sidebar.
4. `tests/integration/console/test_things.py` reads the page by `tests/support/console.py`, and
   `tests/tenancy/test_console.py` needs the address of the new route in its table. `tests/verify/test_console.py` walks
   through it in Chromium.

Handlers need the scope `memory:read`, those of forms `memory:write`; `opt=ADMIN` asks for `tenant:admin`.
"""
