/* Builds elements. Every text goes through `textContent`, so nothing that somebody said can become markup. */

import { counted, LOCALE, number as written, t } from "/page/text.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/* Return a new HTML element. `text` is its text, `onclick` and the like are listeners, the rest are attributes. */
export function el(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/* Return a new SVG element. */
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/* Replace what is in an element. Children that are null are left out. */
export function put(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

export function at(id) {
  return document.getElementById(id);
}

const TIME = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const SHORT = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(LOCALE, { weekday: "short", year: "numeric", month: "short", day: "numeric" });

/* Return a time element. `seconds`: since the epoch. `how`: "time", "short", or "day" with the short time. */
export function time(seconds, how = "time") {
  const date = new Date(1000 * seconds);
  const text = { time: () => TIME.format(date), short: () => SHORT.format(date), day: () => dayAndTime(date) }[how]();
  return el("time", { datetime: date.toISOString(), text });
}

function dayAndTime(date) {
  return `${DAY.format(date)}, ${SHORT.format(date)}`;
}

export function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return t("under a minute");
  if (minutes < 60) return counted(minutes, "{count} minute", "{count} minutes");
  const rest = minutes % 60;
  return `${written(Math.floor(minutes / 60))} h${rest ? ` ${rest} min` : ""}`;
}

/* The kinds of parts of a prompt. */
export const PARTS = {
  system: t("Instructions"), continuity: t("Earlier sessions"), summary: t("Summary"), chapter: t("Chapters"), participants: t("About the people"),
  eviction_note: t("What was left out"), turn: t("Turn"), tool: t("Tool"), note: t("Screen note"), recall: t("Quote from earlier"),
  current: t("The question"),
};

/* Return a number from 0 to 7 for each speaker, in the order in which they are first met; the bot is "bot". */
export class Colours {
  constructor() {
    this.known = new Map();
  }

  /* Meet speakers in this order. */
  meet(ids) {
    for (const id of ids) this.of(id);
  }

  of(id) {
    if (id === "assistant") return "bot";
    if (!id) return "none";
    if (!this.known.has(id)) this.known.set(id, this.known.size % 8);
    return this.known.get(id);
  }
}

/* Return one turn as a list item. */
export function turnItem(turn, colours, extra) {
  const seq = el("span", { class: "seq", "aria-hidden": "true", text: turn.seq });
  const when = time(turn.at);
  if (turn.gone || !turn.parts.length) {
    return el("li", { class: "turn gone", "data-seq": turn.seq }, el("div", { class: "meta" }, when, seq),
      el("p", { text: t("Not shown, because somebody deleted it or used /opt-out.") }), extra);
  }
  const plain = turn.kind === "membership" || turn.kind === "effect";
  const said = turn.parts.map((part) => (plain
    ? el("p", { class: "event", lang: "", text: part.text })
    : el("p", {}, el("b", { class: "who", "data-colour": colours.of(part.id), lang: "", text: part.who }),
      document.createTextNode(" "), el("span", { class: "said", lang: "", text: part.text }))));
  return el("li", { class: `turn ${turn.kind}`, "data-seq": turn.seq }, el("div", { class: "meta" }, when, seq),
    el("div", { class: "words" }, ...said), extra);
}

/* Return a button that reads more of a list. A second press while it reads does nothing; what goes wrong is told below. */
export function readMore(words, read) {
  let reading = false;
  const problem = el("p", { class: "bad", role: "alert" });
  const press = async () => {
    if (reading) return;
    reading = true;
    problem.textContent = "";
    try {
      await read();
    } catch (failure) {
      if (failure.status === 401) location.reload();
      problem.textContent = failure.message;
    } finally {
      reading = false;
    }
  };
  return el("div", {}, el("button", { type: "button", class: "plain", text: words, onclick: press }), problem);
}

export class Failure extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

let asked = 0;

/* Read JSON from the bot. `body`: sent as JSON, which makes it a POST. Throws `Failure` with a sentence.

   Every view is read with it, so the page shows here that something is being read. */
export async function ask(path, body) {
  asked += 1;
  showReading();
  try {
    return await answerOf(path, body);
  } finally {
    asked -= 1;
    showReading();
  }
}

function showReading() {
  at("main").setAttribute("aria-busy", String(asked > 0));
  at("reading").classList.toggle("shown", asked > 0);
}

async function answerOf(path, body) {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
  } catch {
    throw new Failure(0, t("This page cannot reach the bot. Is the bot running?"));
  }
  const told = await response.json().catch(() => null);
  const answer = told || {};
  // A proxy says so if the bot is not there, or answers with a page of its own.
  const isFromProxy = response.ok ? told === null : [502, 503, 504].includes(response.status) && !answer.error;
  if (isFromProxy) throw new Failure(0, t("This page cannot reach the bot. Is the bot running?"));
  if (!response.ok) {
    const failure = new Failure(response.status, answer.error || t("The bot did not accept this ({status}).", { status: String(response.status) }));
    failure.answer = answer;
    throw failure;
  }
  return answer;
}
