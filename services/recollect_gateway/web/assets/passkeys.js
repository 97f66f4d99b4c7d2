// Passkeys. A form with data-passkey fetches from our server what the browser is to sign, and is sent like any other
// form, with the browser's answer in its field `credential`. Without scripts, or passkeys, such forms stay hidden.
"use strict";

const toBytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const toText = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

async function fetchOptions(form) {
  const token = form.elements.form_token.value;
  const body = new URLSearchParams({ form_token: token });
  const response = await fetch(form.dataset.passkey, { method: "POST", body });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const options = await response.json();
  options.challenge = toBytes(options.challenge);
  if (options.user) options.user.id = toBytes(options.user.id);
  for (const list of [options.excludeCredentials, options.allowCredentials]) {
    for (const credential of list ?? []) credential.id = toBytes(credential.id);
  }
  return options;
}

function toJson(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = toText(credential.response[name]);
  }
  const id = toText(credential.rawId);
  return JSON.stringify({ id, rawId: id, type: credential.type, response });
}

async function sign(form) {
  const publicKey = await fetchOptions(form);
  const credential = publicKey.user
    ? await navigator.credentials.create({ publicKey })
    : await navigator.credentials.get({ publicKey });
  form.elements.credential.value = toJson(credential);
  form.submit();
}

const REASONS = {
  NotAllowedError: "No passkey was used.",
  InvalidStateError: "This device has a passkey of this account already.",
  SecurityError: "The browser makes no passkeys for this address.",
};

for (const form of window.PublicKeyCredential ? document.querySelectorAll("form[data-passkey]") : []) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sign(form).catch((error) => {
      const message = form.querySelector("[role=alert]");
      message.textContent = REASONS[error.name] ?? "That did not work. Try again.";
    });
  });
}
