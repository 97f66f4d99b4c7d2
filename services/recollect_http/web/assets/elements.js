// What every page of ours needs of scripts: times in the reader's zone, buttons that copy, and fields that show.
// Pages work without it. Fragments that come later are found by an observer.

const asTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const asDay = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const inFull = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

function localize(element) {
  const at = new Date(element.dateTime);
  if (Number.isNaN(at.getTime())) return;
  const stored = element.textContent.trim();
  element.textContent = (element.dataset.local === "day" ? asDay : asTime).format(at);
  const said = element.title;
  element.title = [inFull.format(at), said || stored].join("\n");
  element.dataset.localized = "";
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copies);
  await navigator.clipboard.writeText(source.textContent);
  const said = button.querySelector("[data-said]");
  const before = said.textContent;
  said.textContent = "Copied";
  setTimeout(() => (said.textContent = before), 2000);
}

function prepare(root) {
  for (const element of root.querySelectorAll("time[data-local]:not([data-localized])")) localize(element);
  for (const button of root.querySelectorAll("button[data-copies][hidden]")) button.hidden = !navigator.clipboard;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copies]");
  if (button) copy(button);
});
new MutationObserver((changes) => {
  for (const change of changes) for (const node of change.addedNodes) if (node.nodeType === 1) prepare(node.parentNode ?? node);
}).observe(document.documentElement, { childList: true, subtree: true });
prepare(document);
