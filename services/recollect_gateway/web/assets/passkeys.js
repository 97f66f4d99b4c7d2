// Passkeys. A form with data-passkey asks our server what is to be signed, has the browser sign it, and is then sent like
// any other form, with the answer in its field `credential`. Without scripts, or passkeys, such forms stay hidden.
"use strict";

const toBytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const toText = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

async function optionsOf(form) {
  const token = form.elements.form_token.value;
  const answer = await fetch(form.dataset.passkey, { method: "POST", body: new URLSearchParams({ form_token: token }) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const options = await answer.json();
  options.challenge = toBytes(options.challenge);
  if (options.user) options.user.id = toBytes(options.user.id);
  for (const list of [options.excludeCredentials, options.allowCredentials]) {
    for (const each of list ?? []) each.id = toBytes(each.id);
  }
  return options;
}

function written(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = toText(credential.response[name]);
  }
  const id = toText(credential.rawId);
  return JSON.stringify({ id, rawId: id, type: credential.type, response });
}

async function sign(form) {
  const publicKey = await optionsOf(form);
  const credential = publicKey.user
    ? await navigator.credentials.create({ publicKey })
    : await navigator.credentials.get({ publicKey });
  form.elements.credential.value = written(credential);
  form.submit();
}

for (const form of window.PublicKeyCredential ? document.querySelectorAll("form[data-passkey]") : []) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sign(form).catch((error) => {
      const told = form.querySelector("[role=alert]");
      told.textContent = error.name === "NotAllowedError" ? "No passkey was used." : "That did not work. Try again.";
    });
  });
}
