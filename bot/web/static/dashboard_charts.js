/* The pictures of the dashboard, drawn as SVG without a library. Each has a text for those who do not see it. */
import { around, counted, number, t } from "/page/text.js";
import { el, svg } from "./dom.js";

const STAGES = [
  ["endpoint", t("end of speech")], ["recognise", t("recognition")], ["model", t("model")], ["voice", t("the voice")], ["rest", t("other")],
];

export function milliseconds(value) {
  return value >= 1000 ? `${number(value / 1000, value >= 9950 ? 0 : 1)} s` : `${Math.round(value)} ms`;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : 0;
}

/* Return what each stage of a reply took, which add up to its total. */
function stagesOf(reply) {
  const known = { endpoint: reply.endpoint, recognise: reply.recognise, model: reply.model || 0, voice: reply.voice || 0 };
  const sum = Object.values(known).reduce((a, b) => a + Math.max(0, b), 0);
  // A reply that was prepared before the end of the question has stages that ran at the same time.
  const scale = sum > reply.total && sum > 0 ? reply.total / sum : 1;
  const stages = Object.fromEntries(Object.entries(known).map(([name, ms]) => [name, Math.max(0, ms) * scale]));
  stages.rest = Math.max(0, reply.total - sum);
  return stages;
}

/* The latencies of the last replies: a column for each, divided by stage. */
export function latencyChart(replies) {
  if (!replies.length) return el("p", { class: "quiet", text: t("No reply yet. For each reply you will see here how long it took.") });
  const width = 320, height = 96, top = Math.max(1000, ...replies.map((reply) => reply.total));
  const step = Math.min(26, width / replies.length), bar = step * 0.72;
  const columns = replies.map((reply, place) => {
    let y = height;
    const stages = stagesOf(reply);
    const parts = STAGES.map(([name]) => {
      const tall = (height - 8) * stages[name] / top;
      y -= tall;
      return svg("rect", { class: `stage ${name}`, x: (place * step).toFixed(1), y: y.toFixed(1), width: bar.toFixed(1), height: tall.toFixed(1) });
    });
    const title = svg("title", { text: t("Turn {turn}: {time}", { turn: String(reply.turn), time: milliseconds(reply.total) }) });
    return svg("g", {}, title, ...parts);
  });
  const typical = median(replies.map((reply) => reply.total));
  const last = replies[replies.length - 1];
  const figures = { typical: milliseconds(typical), last: milliseconds(last.total) };
  const label = t("Time from the end of a question to the first sound. Usually: {typical}. Last time: {last}.", figures);
  const line = (height - (height - 8) * typical / top).toFixed(1);
  return el("figure", {},
    el("p", { class: "figure" }, around("usually {typical}, last time {last}", { typical: el("b", { text: figures.typical }), last: figures.last })),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label, preserveAspectRatio: "none" },
      ...columns, svg("line", { class: "typical", x1: 0, x2: width, y1: line, y2: line })),
    el("ul", { class: "legend" }, STAGES.map(([name, words]) => {
      const took = median(replies.map((reply) => stagesOf(reply)[name]));
      return el("li", {}, el("span", { class: `swatch ${name}`, "aria-hidden": "true" }), `${words} ${milliseconds(took)}`);
    })));
}

/* A line of values, newest right. `unit`: what the last value is called. */
export function sparkline(values, label, className = "") {
  const width = 320, height = 44, top = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, place) => `${(place * step).toFixed(1)},${(height - 3 - (height - 6) * value / top).toFixed(1)}`);
  const path = points.length > 1 ? `M${points.join("L")}` : "";
  const area = path && `${path}L${width},${height}L0,${height}Z`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: `chart line ${className}`, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    svg("path", { class: "area", d: area || "M0,0" }), svg("path", { class: "stroke", d: path || "M0,0" }));
}

const BAD_PACKETS = {
  lost: t("lost"), late: t("late"), dave_failures: t("not decrypted (end to end)"), transport_failures: t("not decrypted"),
  clear: t("unencrypted, not heard"), overflowed: t("dropped by the system"),
  excess: t("too many of one sender"), undecodable: t("not readable"), overrun_frames: t("dropped"), malformed: t("broken"),
};

/* Packets a second, and what went wrong with them. `samples`: counters since the bot joined. */
export function packetChart(samples, link) {
  if (samples.length < 2) return el("p", { class: "quiet", text: t("Counting packets. This takes some seconds.") });
  const rates = [];
  for (let place = 1; place < samples.length; place += 1) {
    const apart = Math.max(0.5, samples[place].at - samples[place - 1].at);
    rates.push(Math.max(0, (samples[place].received - samples[place - 1].received) / apart));
  }
  const now = samples[samples.length - 1], rate = rates[rates.length - 1];
  const label = t("Packets per second in the last minutes. Now: {rate}.", { rate: Math.round(rate) });
  const bad = Object.entries(BAD_PACKETS).filter(([name]) => now[name]);
  const repaired = (now.recovered || 0) + (now.concealed || 0);
  return el("figure", {},
    el("p", { class: "figure" }, around("{rate} packets a second", { rate: el("b", { text: number(Math.round(rate)) }) }), link ? `, ${LINK[link] || link}` : null),
    now.round_trip_ms == null ? null : el("p", { text: t("The voice server answers within {ms} milliseconds.", { ms: number(now.round_trip_ms) }) }),
    sparkline(rates, label, "packets"),
    el("ul", { class: "legend" }, el("li", { text: t("{number} received", { number: now.received }) }),
      bad.map(([name, words]) => el("li", { class: "bad", text: `${number(now[name])} ${words}` })),
      repaired ? el("li", { text: t("{number} filled in", { number: repaired }) }) : null));
}

const LINK = { connected: t("connected"), disconnected: t("disconnected") };
const QUEUES = { recognise: t("to be recognised"), record: t("to be recorded"), answer: t("to be answered"), play: t("to be played") };

/* What waits in the bot's queues. */
export function queueChart(samples) {
  if (!samples.length) return el("p", { class: "quiet", text: t("Measuring. This takes some seconds.") });
  const now = samples[samples.length - 1];
  const total = (sample) => Object.keys(QUEUES).reduce((sum, name) => sum + (sample[name] || 0), 0);
  const waiting = total(now);
  const amount = { count: el("b", { text: number(waiting) }) };
  return el("figure", {},
    el("p", { class: "figure" }, waiting === 1 ? around("{count} thing waits", amount) : around("{count} things wait", amount)),
    sparkline(samples.map(total), t("What waited in the last minutes. Now: {waiting}.", { waiting }), "queues"),
    el("ul", { class: "legend" }, Object.entries(QUEUES).map(([name, words]) => el("li", { text: `${number(now[name] || 0)} ${words}` }))));
}

/* What the server's last hour has cost. */
export function costChart(samples, ceiling) {
  const now = samples[samples.length - 1];
  if (!now) return el("p", { class: "quiet", text: t("Nothing yet.") });
  const row = (amount, limit, words) => el("li", {}, number(Math.round(amount)),
    limit ? el("span", { class: "limit", text: ` ${t("of {limit}", { limit: Math.round(limit) })}` }) : null, ` ${words}`,
    limit ? el("meter", { min: 0, max: limit, high: 0.8 * limit, value: amount, "aria-label": t("{what} of the limit", { what: words }) }) : null);
  return el("figure", {},
    el("p", { class: "figure" }, around("{number} tokens in the last hour", { number: el("b", { text: number(now.tokens) }) })),
    sparkline(samples.map((each) => each.tokens), t("Tokens in the last hour. Now: {tokens}.", { tokens: now.tokens }), "cost"),
    el("ul", { class: "legend" }, row(now.calls, ceiling.calls, now.calls === 1 && !ceiling.calls ? t("call") : t("calls")),
      ceiling.tokens ? row(now.tokens, ceiling.tokens, t("tokens")) : null, row(now.spoken_s, ceiling.spoken_s, t("s of speech")),
      now.dollars ? el("li", { text: t("{amount} US dollars", { amount: now.dollars }) }) : null));
}

// As many as have a place of their own in the picture.
const MOST_TICKS = 2_000;

/* The session's memory as a picture: folded batches, the cursor, and the window.

   It is drawn once and moved afterwards, so that a fold is seen as a movement. */
export class MemoryPicture {
  constructor() {
    this.folds = svg("g", { class: "folds" });
    this.ticks = svg("g", { class: "ticks" });
    this.cursor = svg("g", { class: "cursor" }, svg("line", { x1: 0, x2: 0, y1: 2, y2: 54 }), svg("path", { d: "M-5,0h10l-5,7z" }));
    this.marker = svg("g", { class: "marker" }, svg("rect", { x: -1.5, y: 14, width: 3, height: 34, rx: 1.5 }));
    this.image = svg("svg", { viewBox: "0 0 640 58", class: "memory-image", role: "img", preserveAspectRatio: "none" },
      this.folds, this.ticks, this.marker, this.cursor);
    this.words = el("p", { class: "figure" });
    this.root = el("figure", { class: "memory-picture" }, this.image, this.words);
    this.marker.setAttribute("display", "none");
  }

  /* `memory`: total, cursor, window_from, segments. `kinds`: seq -> colour of its speaker. `mark`: a turn. */
  show(memory, kinds, mark) {
    const total = Math.max(memory.total, 1), unit = 640 / Math.max(total, 24);
    this.folds.replaceChildren(...memory.segments.map((segment) => {
      const wide = Math.max(1.5, (segment.end - segment.start) * unit - 1.2);
      const facts = counted(segment.facts, "{count} fact", "{count} facts");
      const place = { first: String(segment.start), last: String(segment.end - 1), facts };
      const words = t("Turns {first} to {last}: {facts}.", place);
      return svg("rect", { class: "fold", x: (segment.start * unit).toFixed(1), y: 18, width: wide.toFixed(1), height: 26, rx: 2 },
        svg("title", {}, words, segment.gist ? svg("tspan", { lang: "", text: ` ${segment.gist}` }) : null));
    }));
    const ticks = [];
    const step = Math.max(1, Math.ceil((memory.total - memory.window_from) / MOST_TICKS));
    for (let seq = memory.window_from; seq < memory.total; seq += step) {
      const colour = kinds(seq);
      ticks.push(svg("rect", { class: "tick", "data-colour": colour, x: (seq * unit).toFixed(2), y: colour === "bot" ? 14 : 20, width: Math.max(0.8, Math.min(unit * 0.7, 9)).toFixed(2), height: colour === "bot" ? 34 : 22, rx: 1 }));
    }
    this.ticks.replaceChildren(...ticks);
    this.cursor.style.transform = `translateX(${(memory.cursor * unit).toFixed(1)}px)`;
    this.marker.setAttribute("display", mark === undefined ? "none" : "inline");
    if (mark !== undefined) this.marker.style.transform = `translateX(${((mark + 0.5) * unit).toFixed(1)}px)`;
    const folded = memory.cursor ? counted(memory.cursor, "{count} turn is in the summary;", "{count} turns are in the summary;") : t("There is no summary yet;");
    const whole = counted(memory.total - memory.window_from, "{count} turn stays word for word.", "{count} turns stay word for word.");
    const words = `${folded} ${whole}`;
    this.words.textContent = words;
    this.image.setAttribute("aria-label", `${counted(memory.total, "The memory of {count} turn.", "The memory of {count} turns.")} ${words}`);
  }
}
