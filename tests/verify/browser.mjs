// Chromium, told what to do by lines of JSON: ["page.goto", "http://…"] calls that method of Playwright's page, and is
// answered by {"value": …} or {"error": "…"}. ["faults"] takes what went wrong since it was last asked; "frame" is the
// newest frame of the page. ["addAuthenticator"] gives the machine a device that makes passkeys.
import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [executablePath] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath,
  args: ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"], // Pages reach this machine alone.
});
const context = await browser.newContext();
const faults = [];
await context.exposeFunction("noteViolation", (said) => faults.push(`content security policy: ${said}`));
await context.addInitScript(() =>
  document.addEventListener("securitypolicyviolation", (event) =>
    window.noteViolation(`${event.effectiveDirective} of ${event.documentURI} refuses ${event.blockedURI}`),
  ),
);
context.on("console", (message) => message.type() === "error" && faults.push(`console: ${message.text()}`));
context.on("weberror", (error) => faults.push(`script: ${error.error()}`));
context.setDefaultTimeout(30_000);
const page = await context.newPage();

const told = {
  context,
  page,
  get frame() {
    return page.frames().at(-1);
  },
  faults: () => faults.splice(0),
  addAuthenticator: () => addAuthenticator(),
  downloadedBy: (selector) => downloadedBy(selector),
  axe: () => examined(page),
  axeOfFrame: () => examined(told.frame),
};
const downloadedBy = async (selector) => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
  const content = await readFile(await download.path());
  return { name: download.suggestedFilename(), content: content.toString("base64") };
};
const addAuthenticator = async () => {
  const session = await context.newCDPSession(page);
  await session.send("WebAuthn.enable");
  const device = { protocol: "ctap2", transport: "internal", hasResidentKey: true };
  const options = { ...device, hasUserVerification: true, isUserVerified: true };
  await session.send("WebAuthn.addVirtualAuthenticator", { options });
};
const examined = async (shown) => {
  await shown.evaluate(axeSource);
  return shown.evaluate(async () => {
    const { violations } = await window.axe.run(document, { preload: false });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
};
const require = createRequire(import.meta.url);
const axeSource = require("axe-core").source;

const answer = (said) => process.stdout.write(`${JSON.stringify(said)}\n`);
const plain = (value) => (value instanceof Object && ![Object, Array].includes(value.constructor) ? null : value);

for await (const line of createInterface({ input: process.stdin })) {
  const [called, ...given] = JSON.parse(line);
  const path = called.split(".");
  const method = path.pop();
  try {
    const owner = path.reduce((found, name) => found[name], told);
    answer({ value: plain(await owner[method](...given)) ?? null });
  } catch (error) {
    answer({ error: String(error) });
  }
}
await browser.close();
