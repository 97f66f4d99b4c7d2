"use strict";
Scalar.createApiReference("#reference", {
  url: "/v1/openapi.json",
  agent: { disabled: true },
  hideClientButton: true,
  mcp: { disabled: true },
  persistAuth: false,
  showDeveloperTools: "never",
  telemetry: false,
  withDefaultFonts: false,
});
