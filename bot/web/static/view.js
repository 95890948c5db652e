/* The view of the share page: its state, problems and notes, and the sentences for them.

   Changes are announced to screen readers too, except notes, which would be read aloud over the conversation. */

import { counted, LOCALE, t } from "/page/text.js";

const SHOWN_NOTES = 6;
const SURFACES = {
  monitor: t("You are sharing your whole screen"), window: t("You are sharing a window"), browser: t("You are sharing a browser tab"),
};
// Kinds of trouble by priority. The first one present is shown.
const TROUBLES = ["connection", "muted", "reading", "refused", "choice"];
const BRIEF_TROUBLE_MS = 10_000;

export const at = (id) => document.getElementById(id);
export const page = {
  state: "opening",
  bot: "Roomtone",
  limits: { max_side_px: 1280, max_bytes: 400_000, quality: 0.7, sent_per_s: 2, looked_per_s: 2.5,
    max_buffered_bytes: 400_000, ping_s: 15 },
  resume: null,
  socket: null,
  brokenSince: null,
  attempts: 0,
  lastMessageAt: 0,
  capture: null,
  startedAt: 0,
  sentAt: 0,
  sent: 0,
  troubles: {},
  troubleTimers: {},
};

export function show(state, sentence) {
  const changed = page.state !== state;
  page.state = state;
  document.body.dataset.state = state;
  for (const section of document.querySelectorAll("section[data-for]")) {
    section.hidden = section.dataset.for !== state;
  }
  setTitle();
  if (sentence) announce(sentence);
  if (changed) {
    const heading = document.querySelector(`section[data-for="${state}"] h1`);
    if (heading) heading.focus();
  }
}

export function announce(sentence) {
  at("announcer").textContent = sentence;
}

export function setText(id, sentence) {
  at(id).textContent = sentence || "";
  at(id).hidden = !sentence;
}

/* Show a trouble and announce it, or remove it (empty sentence). */
export function trouble(kind, sentence) {
  const before = page.troubles[kind] || "";
  page.troubles[kind] = sentence;
  setText("trouble", TROUBLES.map((each) => page.troubles[each]).find(Boolean));
  if (sentence && sentence !== before) announce(sentence);
}

/* Show a trouble for a few seconds. */
export function briefTrouble(kind, sentence) {
  trouble(kind, sentence);
  clearTimeout(page.troubleTimers[kind]);
  page.troubleTimers[kind] = setTimeout(() => {
    if (page.troubles[kind] === sentence) trouble(kind, "");
  }, BRIEF_TROUBLE_MS);
}

export function setConnected(open) {
  document.body.dataset.link = open ? "open" : "broken";
  setHeadline();
}

/* Return what is shared, as a sentence without its full stop. */
export function sharing() {
  return (page.capture && SURFACES[page.capture.surface]) || t("You are sharing your screen");
}

export function setHeadline() {
  const broken = document.body.dataset.link === "broken";
  at("sharing-what").textContent = broken ? t("Not connected. This page sends nothing") : sharing();
  setTitle();
}

export function setTitle() {
  const broken = document.body.dataset.link === "broken";
  const shared = broken ? t("○ Not connected") : t("● Sharing");
  document.title = `${page.state === "sharing" ? shared : t("Share your screen")} · ${page.bot}`;
}

export function addNote(what) {
  const now = new Date();
  const item = document.createElement("li");
  const time = document.createElement("time");
  time.dateTime = now.toISOString();
  time.textContent = now.toLocaleTimeString(LOCALE, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const text = document.createElement("span");
  text.lang = "";
  text.textContent = what;
  item.append(time, text);
  at("notes").prepend(item);
  while (at("notes").children.length > SHOWN_NOTES) at("notes").lastElementChild.remove();
  at("no-notes").hidden = true;
}

export function tick() {
  if (page.state !== "sharing") return;
  const seconds = Math.floor((Date.now() - page.startedAt) / 1000);
  const minutes = Math.floor(seconds / 60) % 60;
  const hours = Math.floor(seconds / 3600);
  const padded = (value) => String(value).padStart(2, "0");
  at("elapsed").textContent = hours
    ? `${hours}:${padded(minutes)}:${padded(seconds % 60)}` : `${minutes}:${padded(seconds % 60)}`;
  if (page.sentAt) {
    const age = Math.round((Date.now() - page.sentAt) / 1000);
    const when = age < 3 ? t("The last picture was sent just now.") : age < 100
      ? counted(age, "The last picture was sent {count} second ago.", "The last picture was sent {count} seconds ago.")
      : counted(Math.round(age / 60), "The last picture was sent {count} minute ago.", "The last picture was sent {count} minutes ago.");
    at("preview-caption").textContent = `${when} ${t("While nothing changes, this page sends nothing.")}`;
  }
}
