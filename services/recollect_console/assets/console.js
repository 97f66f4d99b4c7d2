// The frame: menus that close, the dialog for questions, commands by Ctrl-K, keys for lists, and toasts that go.
// Pages work without it.

const dialog = document.getElementById("dialog");
const commands = document.getElementById("commands");
const narrow = window.matchMedia("(max-width: 60rem)");

/* Menus close by Escape, and by a click elsewhere. */
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

/* Questions: a fragment that htmx put into the dialog opens it. */
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target === dialog && !dialog.open) dialog.showModal();
  focusOn(event.detail.target);
});
document.addEventListener("click", (event) => {
  const closer = event.target.closest("[data-closes]");
  const closed = closer && closer.closest("dialog");
  if (!closed) return;
  event.preventDefault();
  closed.close();
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.target?.id !== "panel" || !narrow.matches) return;
  event.preventDefault(); // No room for a panel: its page is opened.
  location.assign(event.detail.elt.href);
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "panel") return;
  for (const row of document.querySelectorAll("tr[aria-selected]")) row.removeAttribute("aria-selected");
  event.detail.requestConfig.elt.closest("tr")?.setAttribute("aria-selected", "true");
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-back]")) history.back();
});
dialog.addEventListener("close", () => dialog.replaceChildren());
document.addEventListener("htmx:sendError", () => say("The server cannot be reached. Try again.", "bad"));
document.addEventListener("htmx:responseError", () => say("That did not work. Try again in a moment.", "bad"));

/* The summary of errors has the focus, so that it is read. */
const focusOn = (root) => root.querySelector("[data-focus]")?.focus();
focusOn(document);

/* Buttons of a form that was sent say so, and cannot send it twice. */
document.addEventListener("submit", (event) => {
  const { submitter } = event;
  if (!submitter || event.defaultPrevented || submitter.form?.method !== "post") return;
  if ("keeps" in submitter.form.dataset) return; // Its answer is a file: the page stays.
  submitter.setAttribute("aria-busy", "true");
  setTimeout(() => (submitter.disabled = true));
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) for (const busy of document.querySelectorAll("[aria-busy]")) busy.disabled = false;
});

/* Toasts. */
const TOAST_MS = 6000;
export function say(text, kind = "") {
  const toast = document.createElement("div");
  toast.className = `toast ${kind}`;
  toast.dataset.toast = "";
  toast.textContent = text;
  document.getElementById("toasts").append(toast);
  fade(toast);
}
const fade = (toast) => setTimeout(() => toast.remove(), TOAST_MS);
document.querySelectorAll("[data-toast]").forEach(fade);
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "toasts") event.detail.target.querySelectorAll("[data-toast]").forEach(fade);
});
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  address.searchParams.delete("done");
  history.replaceState(history.state, "", address);
}

/* Lists: j and k go through the rows, Enter opens one. */
const isTyping = (element) => element.closest("input, textarea, select, [contenteditable], dialog[open]");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "/") return open(event, document.getElementById("search"));
  if (event.key !== "j" && event.key !== "k") return;
  const links = [...document.querySelectorAll("[data-row]")];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? 0 : at + (event.key === "j" ? 1 : -1)];
  if (next) open(event, next);
});
function open(event, element) {
  event.preventDefault();
  element.focus();
}

/* Commands: every link of the frame that is marked, what the server finds by its name, and the search. */
const input = document.getElementById("command");
const list = document.getElementById("command-list");
const search = document.getElementById("search");
const FIND_MS = 120;
let finding = new AbortController();

function show() {
  const typed = input.value.trim();
  const links = [...document.querySelectorAll("a[data-command]")].filter((link) =>
    link.textContent.trim().toLowerCase().includes(typed.toLowerCase()),
  );
  const items = links.map((link) => item(link.textContent.trim(), link.href));
  if (typed) items.push(item(`${search.placeholder}: ${typed}`, searched(typed)));
  list.replaceChildren(...items);
  select(0);
  finding.abort();
  finding = new AbortController();
  if (typed) setTimeout(find, FIND_MS, typed, items.at(-1), finding.signal);
}
async function find(typed, before, signal) {
  if (signal.aborted) return;
  const address = new URL(input.dataset.found, location.href);
  address.searchParams.set("q", typed);
  try {
    const answer = await fetch(address, { signal, headers: { Accept: "application/json" } });
    const found = answer.ok ? await answer.json() : [];
    before.before(...found.filter(({ what }) => what !== "Page").map(({ label, what, href }) => item(label, href, what)));
    if (selected() === list.childElementCount - 1) select(0);
  } catch (error) {
    if (error.name !== "AbortError") say("The server cannot be reached. Try again.", "bad");
  }
}
function searched(text) {
  const target = new URL(search.form.action);
  target.search = new URLSearchParams([...new FormData(search.form)].filter(([name]) => name !== search.name)).toString();
  target.searchParams.set(search.name, text);
  return target.href;
}
function item(label, href, what = "") {
  const entry = document.createElement("li");
  entry.setAttribute("role", "option");
  const name = document.createElement("bdi");
  name.textContent = label;
  entry.append(name);
  if (what) {
    const kind = document.createElement("span");
    kind.className = "small soft";
    kind.textContent = ` ${what}`;
    entry.append(kind);
  }
  entry.dataset.href = href;
  entry.id = `command-${list.childElementCount}-${Math.random().toString(36).slice(2)}`;
  entry.addEventListener("click", () => location.assign(href));
  return entry;
}
const selected = () => [...list.children].findIndex((entry) => entry.getAttribute("aria-selected") === "true");
function select(index) {
  const items = [...list.children];
  items.forEach((entry, at) => entry.setAttribute("aria-selected", String(at === index)));
  input.setAttribute("aria-activedescendant", items[index]?.id ?? "");
  items[index]?.scrollIntoView({ block: "nearest" });
}
input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  const items = [...list.children];
  const at = selected();
  if (event.key === "ArrowDown") select(Math.min(at + 1, items.length - 1));
  else if (event.key === "ArrowUp") select(Math.max(at - 1, 0));
  else if (event.key === "Enter" && items[at]) location.assign(items[at].dataset.href);
  else return;
  event.preventDefault();
});
const openCommands = () => {
  input.value = "";
  show();
  commands.showModal();
};
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  if (commands.open) commands.close();
  else openCommands();
});
for (const button of document.querySelectorAll("[data-opens-commands]")) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    openCommands();
  });
}

/* The slider over revisions: it tells where it stands, and fills in the moment of its form. */
document.addEventListener("input", (event) => {
  const slider = event.target.closest("[data-moments] input[type=range]");
  if (!slider) return;
  const moments = slider.closest("[data-moments]");
  const marks = [...moments.querySelectorAll("[data-at]")].filter((mark) => Number(mark.dataset.revision) <= Number(slider.value));
  const at = marks.length ? new Date(marks.at(-1).dataset.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "";
  moments.querySelector("[data-moment]").textContent = `${Number(slider.value).toLocaleString()}${at ? `, after ${at},` : ""}`;
  const field = slider.form.querySelector("input[name=as_of]:not([type=range])");
  if (field) field.value = slider.value;
});

/* A sidebar over the page closes when the window becomes wide. */
narrow.addEventListener("change", () => document.getElementById("sidebar").hidePopover?.());
