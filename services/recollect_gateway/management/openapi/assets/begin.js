"use strict";
// When it is loaded, Zod in Scalar tries whether it may compile code, which the content security policy forbids.
globalThis.__zod_globalConfig = { jitless: true };
addEventListener("DOMContentLoaded", () =>
  Scalar.createApiReference("#reference", {
    url: "/v1/openapi.json",
    agent: { disabled: true },
    authentication: { preferredSecurityScheme: "apiKey" },
    hideClientButton: true,
    mcp: { disabled: true },
    orderRequiredPropertiesFirst: false,
    orderSchemaPropertiesBy: "preserve",
    persistAuth: false,
    showDeveloperTools: "never",
    telemetry: false,
    withDefaultFonts: false,
  }),
);
