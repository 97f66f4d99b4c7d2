// What the test asks a client to do, the person who is sent to a browser, and what the client found: as errand.py.
export const CALLBACK = "http://127.0.0.1:33418/callback";

export const own = JSON.parse(process.argv[2]);
export const headers = own.key ? { Authorization: `Bearer ${own.key}` } : {};

// Have the person open an address; the parameters of the one to which they were sent at last.
export async function visit(url) {
  const answer = await fetch(`${own.person}?url=${encodeURIComponent(url)}`);
  return new URL(await answer.text()).searchParams;
}

export function tell(tools, answers) {
  process.stdout.write(`${JSON.stringify({ tools, answers })}\n`, () => process.exit(0));
}

// The storage of an OAuth client for one session, as the SDK and the AI SDK want it; `said` is what the person brought.
export class Wallet {
  redirectUrl = CALLBACK;
  clientMetadata = {
    client_name: "TypeScript",
    redirect_uris: [CALLBACK],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  kept = {};
  clientInformation = () => this.kept.client;
  saveClientInformation = (client) => void (this.kept.client = client);
  tokens = () => this.kept.tokens;
  saveTokens = (tokens) => void (this.kept.tokens = tokens);
  codeVerifier = () => this.kept.verifier;
  saveCodeVerifier = (verifier) => void (this.kept.verifier = verifier);
  redirectToAuthorization = async (url) => void (this.said = await visit(url.href));
}
