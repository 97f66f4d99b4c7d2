// Where browsers enforce Trusted Types, text becomes markup by this policy alone. It is for htmx, which inserts what our
// own server rendered; no text becomes a script or the address of one.
"use strict";
if (window.trustedTypes) window.trustedTypes.createPolicy("default", { createHTML: (html) => html });
