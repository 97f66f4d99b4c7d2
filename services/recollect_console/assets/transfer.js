// Imports: a file is dropped, tried first as a job whose progress is shown below it, and then imported without being
// chosen again. Without this module the form sends the file, and asks what to do.

const form = document.querySelector("[data-sends-file]");
if (form) start();

function start() {
  const input = form.querySelector("input[type=file]");
  const drop = form.querySelector("[data-drop]");
  const status = form.querySelector("[data-sending]");
  const checked = document.querySelector("[data-checked]");
  form.querySelector("[data-without-scripts]").hidden = true;

  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    send("check");
  });
  form.addEventListener("submit", (event) => {
    if (!input.files.length) return;
    event.preventDefault();
    send("check");
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-imports]")) send("import");
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const button of document.querySelectorAll("[data-imports]")) button.hidden = !input.files.length;
    for (const again of document.querySelectorAll("[data-again]")) again.hidden = Boolean(input.files.length);
  });

  async function send(mode) {
    const [file] = input.files;
    const address = new URL(form.dataset.sendsFile, location.href);
    const told = { name: file.name.slice(-200), type: file.type.slice(0, 200), mode };
    for (const name of ["format", "strategy"]) told[name] = form.elements[name].value;
    address.search = new URLSearchParams(told).toString();
    status.textContent = `Sending ${file.name} …`;
    try {
      const headers = {
        "Content-Type": "application/octet-stream",
        "X-Recollect-Form-Token": form.elements.form_token.value,
        "HX-Request": "true",
        "HX-Target": "toasts",
      };
      const answer = await fetch(address, { method: "POST", body: file, headers });
      if (answer.ok) show(mode, (await answer.json()).job);
      else document.getElementById("toasts").insertAdjacentHTML("beforeend", await answer.text());
    } catch {
      status.textContent = "It could not be sent. Try again.";
      return;
    }
    status.textContent = "";
  }

  function show(mode, job) {
    if (mode === "import") return location.assign(job);
    const state = document.createElement("section");
    state.id = "state";
    for (const [name, value] of [["get", job], ["trigger", "load"], ["target", "this"], ["swap", "outerHTML"]]) {
      state.setAttribute(`hx-${name}`, value);
    }
    checked.replaceChildren(state);
    window.htmx.process(state);
  }
}
