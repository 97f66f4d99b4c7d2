// The timeline while it happens: new entries come on top, and what is read does not move.

const news = document.getElementById("news");
const live = document.getElementById("live");
const root = document.documentElement;
let source = null;
let reached = Number(news.dataset.after);
let due = reached;
let isLoading = false;

root.style.overflowAnchor = "none"; // It is done here, in one way in all browsers.

function say(text) {
  live.hidden = false;
  live.textContent = text;
}

function connect() {
  if (source || document.hidden) return;
  const address = new URL(news.dataset.live, location.href);
  address.searchParams.set("after", due);
  source = new EventSource(address);
  source.addEventListener("open", () => say("Live"));
  source.addEventListener("change", (event) => {
    due = Math.max(due, JSON.parse(event.data).revision);
    load();
  });
  source.addEventListener("refetch", () => location.reload());
  source.addEventListener("end", (event) => {
    if (JSON.parse(event.data).reason !== "draining") stop();
  });
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) stop();
    else say("Connecting again…");
  });
}
function stop() {
  source?.close();
  source = null;
  say("No longer live. Load the page again.");
}

/* A page that nobody sees holds no connection. */
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return connect();
  source?.close();
  source = null;
});

async function load() {
  if (isLoading || due <= reached) return;
  isLoading = true;
  const upTo = due;
  const address = new URL(news.dataset.news, location.href);
  address.searchParams.set("after", reached);
  const height = root.scrollHeight;
  const isReading = window.scrollY > 8 || document.getElementById("results").contains(document.activeElement);
  try {
    await htmx.ajax("GET", address.href, { target: "#news", swap: "afterbegin" });
    const shown = [...news.querySelectorAll("[data-revision]")].map((entry) => Number(entry.dataset.revision));
    reached = Math.max(upTo, ...shown);
    if (isReading) window.scrollBy({ top: root.scrollHeight - height, behavior: "instant" });
  } finally {
    isLoading = false;
  }
  load();
}

connect();
