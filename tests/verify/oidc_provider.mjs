// npm's oidc-provider as it comes, but for its keys and clients: the first argument says which, and at which port.
import Provider from "oidc-provider";

const { port, keys, clients } = JSON.parse(process.argv[2]);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys },
  clients,
  cookies: { keys: ["of one run"] },
  claims: { email: ["email", "email_verified"], profile: ["name"] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: true, name: "Grace" }),
  }),
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, audience) => ({ audience, accessTokenFormat: "jwt", scope: "memory:read memory:write" }),
    },
  },
});
provider.on("authorization.accepted", ({ oidc }) => console.log(JSON.stringify({ asked: oidc.params })));
for (const event of ["grant.error", "authorization.error", "userinfo.error", "server_error"])
  provider.on(event, (_, error) => console.log(JSON.stringify({ error: String(error) })));
provider.listen(port, "127.0.0.1", () => console.log(JSON.stringify({ listens: port })));
