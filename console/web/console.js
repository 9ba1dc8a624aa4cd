// Refreshes the page from a stream of events, drains the bars between them, and asks for the key to be
// typed. Everything else works without it.
const live = document.getElementById("live");
const status = document.getElementById("status");
const trouble = document.getElementById("trouble");
const pause = document.getElementById("pause");
let source = null;
let paused = false;
let read = Date.now() - lagOf(live.dataset.lag);
const fulls = new Map(); // the longest time to expiry that was seen of a lease

function lagOf(seconds) {
  return 1000 * (Number(seconds) || 0);
}

function span(s) {
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  s = Math.max(0, s);
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two((s / 60) % 60)} m`;
  return `${Math.floor(s / 86400)} d ${two((s / 3600) % 24)} h`;
}

// tick shows ages and bars as they are now.
function tick() {
  const passed = (Date.now() - read) / 1000;
  for (const e of live.querySelectorAll("[data-age]")) {
    e.textContent = span(Number(e.dataset.age) + passed);
  }
  for (const e of live.querySelectorAll("[data-left]")) {
    const left = Math.max(0, Number(e.dataset.left) - passed);
    if (e.tagName === "PROGRESS") {
      e.max = fullOf(e);
      e.value = left;
    } else {
      e.textContent = span(left);
    }
  }
}

function fullOf(bar) {
  const row = bar.closest("[data-id]");
  const id = row ? row.dataset.id : "";
  const full = Math.max(fulls.get(id) || 0, Number(bar.dataset.left), 30);
  fulls.set(id, full);
  return full;
}

// morph makes an element like another and leaves alone what is the same in both, so that the focus, a
// selection and a screen reader's place stay.
function morph(old, now) {
  for (const name of old.getAttributeNames()) {
    if (!now.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const name of now.getAttributeNames()) {
    if (old.getAttribute(name) !== now.getAttribute(name)) old.setAttribute(name, now.getAttribute(name));
  }
  const ids = new Set([...now.children].map((c) => c.dataset.id));
  const byID = new Map();
  for (const c of [...old.children]) {
    if (c.dataset.id && !ids.has(c.dataset.id)) c.remove();
    else if (c.dataset.id) byID.set(c.dataset.id, c);
  }
  let at = old.firstChild;
  for (const next of [...now.childNodes]) {
    const known = next.dataset && next.dataset.id && byID.get(next.dataset.id);
    while (known && at && at !== known && !(at.dataset && at.dataset.id)) {
      const rest = at.nextSibling; // what moves loses the focus: remove what is between
      at.remove();
      at = rest;
    }
    if (known && known !== at) old.insertBefore(known, at);
    const here = known || at;
    if (here && !here.isEqualNode(next)) {
      if (same(here, next)) {
        if (here.nodeType === Node.ELEMENT_NODE) morph(here, next);
        else here.nodeValue = next.nodeValue;
      } else {
        old.insertBefore(next, here);
        continue;
      }
    } else if (!here) {
      old.append(next);
      continue;
    }
    at = here.nextSibling;
  }
  while (at) {
    const rest = at.nextSibling;
    at.remove();
    at = rest;
  }
}

function same(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName &&
    (!a.dataset || a.dataset.id === b.dataset.id);
}

function tell(text, kind) {
  if (status.textContent === text) return;
  status.textContent = text;
  status.dataset.kind = kind || "";
}

// show takes an event: how many seconds ago and when it was read, and then what the view shows.
function show(event) {
  const cut = event.indexOf("\n");
  const [, lag, when] = event.slice(0, cut).match(/^(\S+) (.*)$/);
  const text = event.slice(cut + 1);
  const page = new DOMParser().parseFromString(`<div>${text}</div>`, "text/html");
  const now = page.body.firstElementChild;
  for (const name of live.getAttributeNames()) now.setAttribute(name, live.getAttribute(name));
  read = Date.now() - lagOf(lag);
  if (fulls.size > 1000) fulls.clear();
  const focused = document.activeElement;
  morph(live, now);
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  tick();
  trouble.hidden = true;
  const asof = document.getElementById("asof");
  if (asof) asof.textContent = when;
  tell("Live", "good");
  check();
}

function open() {
  if (source || paused || document.hidden || !live.dataset.events) return;
  source = new EventSource(live.dataset.events);
  source.addEventListener("view", (e) => show(e.data));
  source.addEventListener("trouble", (e) => {
    trouble.textContent = e.data;
    trouble.hidden = false;
    tell("Not up to date", "bad");
  });
  source.onerror = () => {
    tell("Connection lost; trying again", "bad");
    if (source && source.readyState === EventSource.CLOSED) {
      close();
      again();
    }
  };
}

// again asks why there is no stream before it tries anew.
async function again() {
  try {
    const answer = await fetch("style.css", { cache: "no-store" });
    if (answer.status === 403) tell("You are no longer admitted; reload this page", "bad");
    else if (answer.ok) tell("No room for another page that refreshes itself; trying again", "bad");
  } catch {
    // the connection is lost, as the page says already
  }
  setTimeout(open, 5000);
}

function close() {
  if (source) source.close();
  source = null;
}

const form = document.getElementById("release");
const confirmation = document.getElementById("confirm");

// check lets the form be sent if the key was typed, and the holder is the one that the viewer saw.
function check() {
  if (!form) return;
  const lease = document.getElementById("lease");
  const changed = lease !== null && lease.dataset.token !== form.dataset.token;
  document.getElementById("changed").hidden = !changed;
  form.querySelector("button").disabled = changed || confirmation.value !== form.dataset.key;
}

if (form) {
  confirmation.addEventListener("input", check);
  check();
}

const search = document.getElementById("prefix");
if (matchMedia("(hover: hover)").matches) search.placeholder += " (press /)";
const keys = {
  "/": () => search.focus(),
  p: () => pause.hidden || pause.click(),
  "?": () => (document.getElementById("keys").hidden = !document.getElementById("keys").hidden),
};
addEventListener("keydown", (e) => {
  if (!Object.hasOwn(keys, e.key) || e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "INPUT") return;
  e.preventDefault();
  keys[e.key]();
});
pause.hidden = !live.dataset.events;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  if (paused) {
    close();
    tell("Paused", "");
  } else {
    open();
  }
});
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", open);
setInterval(() => paused || tick(), 500);
tick();
open();
