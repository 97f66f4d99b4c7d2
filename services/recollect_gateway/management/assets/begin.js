"use strict";
// Zod, in Scalar, would try as it is loaded whether text can become code. The content security policy lets it not.
globalThis.__zod_globalConfig = { jitless: true };
addEventListener("DOMContentLoaded", () =>
  Scalar.createApiReference("#reference", {
    url: "/v1/openapi.json",
    agent: { disabled: true },
    hideClientButton: true,
    mcp: { disabled: true },
    persistAuth: false,
    showDeveloperTools: "never",
    telemetry: false,
    withDefaultFonts: false,
  }),
);
