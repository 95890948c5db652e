/* Stored sessions: the list, full-text search, one session's transcript, and what the model saw at each reply. */
import { MemoryPicture } from "./charts.js";
import { around, counted, number as written, t } from "/page/text.js";
import { ask, Colours, duration, el, PARTS, put, readMore, time, turnItem } from "./dom.js";

function searchForm(query) {
  const input = el("input", { type: "search", id: "query", name: "q", value: query || "", maxlength: 400, autocomplete: "off" });
  return el("form", {
    class: "search", role: "search",
    onsubmit: (event) => {
      event.preventDefault();
      location.hash = input.value.trim() ? `#/search/${encodeURIComponent(input.value.trim())}` : "#/history";
    },
  }, el("label", { for: "query", text: t("Search what was said") }), el("div", {}, input, el("button", { type: "submit", class: "primary", text: t("Search") })));
}

function place(session) {
  return session.room ? el("span", { lang: "", text: `${session.room} · ${session.guild}` }) : t("A channel without a name from Discord");
}

function address(session, seq) {
  const turn = seq === null || seq === undefined ? "" : `/turn/${seq}`;
  return `#/history/${encodeURIComponent(session)}${turn}`;
}

export async function showSessions(main) {
  const list = el("ol", { class: "sessions" });
  let oldest = null;
  const add = async () => {
    const found = await ask(`/api/sessions${oldest === null ? "" : `?before=${oldest}`}`);
    for (const session of found.sessions) {
      oldest = session.started_at;
      const took = (session.ended_at || session.last_at) - session.started_at;
      list.append(el("li", { class: "card" },
        el("a", { class: "row", href: address(session.session) }, el("b", {}, time(session.started_at, "day")),
          session.live ? el("span", { class: "tag live", text: t("live") }) : null),
        session.topic ? el("p", { class: "topic", lang: "", text: session.topic }) : null,
        el("p", { class: "quiet" }, place(session)),
        el("p", { class: "quiet", text: `${counted(session.turn_count, "{count} turn", "{count} turns")}, ${duration(took)}` })));
    }
    more.hidden = !found.more;
    return found.sessions.length;
  };
  const more = readMore(t("Earlier sessions"), add);
  main.replaceChildren(el("h1", { text: t("History"), tabindex: "-1" }), searchForm(), list, more);
  if (!await add()) list.replaceWith(el("p", { class: "card", text: t("No session is stored yet. A session begins when the bot joins a voice channel.") }));
}

export async function showSearch(main, query) {
  const results = el("ol", { class: "hits" });
  const said = el("p", { class: "quiet", role: "status", text: t("Searching…") });
  main.replaceChildren(el("h1", { text: t("Search"), tabindex: "-1" }), searchForm(query), said, results);
  const { hits } = await ask(`/api/search?q=${encodeURIComponent(query)}`);
  said.textContent = hits.length ? counted(hits.length, "{count} result, best first", "{count} results, best first") : t("No results. Try fewer words, or other words.");
  const words = query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 2);
  results.replaceChildren(...hits.map((hit) => el("li", { class: "card" },
    el("a", { class: "row", href: address(hit.session, hit.seq) }, time(hit.at, "day"), " · ", place(hit.where)),
    hit.turns.length
      ? el("div", { class: "around" }, hit.turns.filter((turn) => !turn.gone).map((turn) => turn.parts.map((part) => el("p", { class: turn.seq === hit.seq ? "found" : "near" },
        el("b", { lang: "", text: part.who }), " ", marked(part.text, words)))))
      : el("p", { class: "found" }, hit.who ? el("b", { lang: "", text: `${hit.who} ` }) : null, marked(hit.text, words)),
    el("p", { class: "quiet" }, hit.kind === "turn" ? null : el("span", { class: "tag", text: hit.kind === "note" ? t("screen note") : t("summary of turns") }),
      hit.corrected ? el("span", { class: "tag", text: t("corrected later") }) : null))));
}

/* Return the text with the words that were searched for marked. */
function marked(text, words) {
  const piece = el("span", { lang: "" });
  if (!words.length) return el("span", { lang: "", text });
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(${escaped.join("|")})`, "giu");
  text.split(pattern).forEach((each, place) => piece.append(place % 2 ? el("mark", { text: each }) : document.createTextNode(each)));
  return piece;
}

export async function showSession(main, session, { turn, reply }) {
  const page = new Session(main, session);
  await page.open(turn, reply);
}

class Session {
  constructor(main, session) {
    this.main = main;
    this.session = session;
    this.colours = new Colours();
    this.speakers = new Map();
    this.replies = [];
  }

  path(rest = "") {
    return `/api/sessions/${encodeURIComponent(this.session)}${rest}`;
  }

  async open(turn, reply) {
    const wanted = turn ?? reply;
    const first = wanted === undefined ? 0 : Math.max(0, wanted - 20);
    this.data = await ask(this.path(`?first=${first}`));
    const data = this.data;
    this.first = this.end = Math.min(first, data.total);
    this.colours.meet(data.speakers);
    data.by_turn.forEach((speaker, seq) => this.speakers.set(seq, this.colours.of(data.speakers[speaker] ?? "")));
    this.turns = el("ol", { class: "turns tall", "aria-label": t("The transcript"), tabindex: "0" });
    this.earlier = readMore(t("Earlier turns"), () => this.more(false));
    this.later = readMore(t("Later turns"), () => this.more(true));
    this.seen = el("section", { class: "card seen", "aria-labelledby": "seen-title" });
    this.picture = new MemoryPicture();
    const took = (data.ended_at || data.last_at) - data.started_at;
    this.main.replaceChildren(
      el("p", { class: "back" }, el("a", { href: "#/history", text: t("← History") })),
      el("div", { class: "head" }, el("h1", { tabindex: "-1" }, time(data.started_at, "day")),
        el("p", { class: "quiet place" }, place(data), ` · ${counted(data.turn_count, "{count} turn", "{count} turns")}, ${duration(took)}`, data.live ? ` · ${t("live now")}` : null)),
      el("div", { class: "room" },
        el("div", { class: "column wide" },
          el("section", { class: "card", "aria-labelledby": "memory-title" }, el("h2", { id: "memory-title", text: t("Memory") }), this.picture.root,
            el("details", { class: "summary-box" }, el("summary", { text: t("Summary at the end") }), data.summary ? el("p", { class: "summary", lang: "", text: data.summary }) : el("p", { text: data.hidden || t("There was no summary.") })),
            data.chapters.length ? el("details", { class: "summary-box" }, el("summary", { text: t("Chapters") }), el("ol", { class: "sources" }, data.chapters.map((each) => this.source(each)))) : null),
          el("section", { class: "card", "aria-labelledby": "transcript-title" }, el("h2", { id: "transcript-title", text: t("Transcript") }), this.earlier, this.turns, this.later)),
        el("div", { class: "column seen-column" }, this.seen)));
    await this.readReplies();
    this.addTurns(data.turns, true);
    this.drawMemory();
    if (reply !== undefined) await this.showReply(reply);
    else this.seenIntroduction();
    if (wanted !== undefined) this.point(wanted);
  }

  async readReplies() {
    if (!this.data.prompts) return;
    this.replies = (await ask(this.path("/replies"))).replies;
  }

  drawMemory(at, mark) {
    const cursor = at === undefined ? Math.max(0, ...this.data.segments.map((each) => each.end)) : at;
    const segments = this.data.segments.filter((each) => each.end <= cursor);
    const total = mark === undefined ? this.data.total : Math.max(mark + 1, cursor);
    this.picture.show({ total, cursor, window_from: cursor, segments }, (seq) => this.speakers.get(seq) ?? "none", mark);
  }

  // -- the transcript -------------------------------------------------------------------------------------------------

  addTurns(turns, later) {
    const answered = new Map(this.replies.map((each) => [each.turn, each]));
    const items = turns.map((turn) => {
      const asked = turn.kind === "assistant" ? turn.answers : null;
      const link = asked !== null && asked !== undefined && answered.has(asked)
        ? el("p", { class: "why" }, el("a", { href: `#/history/${encodeURIComponent(this.session)}/reply/${asked}`, text: t("What the model saw") })) : null;
      return turnItem(turn, this.colours, link);
    });
    if (later) this.turns.append(...items);
    else this.turns.prepend(...items);
    if (turns.length) {
      if (later) this.end = turns[turns.length - 1].seq + 1;
      else this.first = turns[0].seq;
    }
    this.earlier.hidden = this.first <= 0;
    this.later.hidden = this.end >= this.data.total;
  }

  async more(later) {
    const first = later ? this.end : Math.max(0, this.first - 100);
    const found = await ask(this.path(`?first=${first}`));
    this.addTurns(later ? found.turns : found.turns.filter((turn) => turn.seq < this.first), later);
  }

  point(seq) {
    const item = this.turns.querySelector(`[data-seq="${seq}"]`);
    for (const each of this.turns.querySelectorAll(".pointed")) each.classList.remove("pointed");
    if (!item) return;
    item.classList.add("pointed");
    // Only the list is scrolled, not the page.
    this.turns.scrollTop = item.offsetTop - this.turns.offsetTop - this.turns.clientHeight / 3;
  }

  // -- what the model saw ---------------------------------------------------------------------------------------------

  seenIntroduction() {
    const head = el("h2", { id: "seen-title", tabindex: "-1", text: t("What the model saw") });
    if (!this.data.prompts) {
      this.seen.replaceChildren(head, el("p", { class: "quiet", text: t("Only server managers can see this.") }));
    } else if (!this.replies.length) {
      this.seen.replaceChildren(head, el("p", { class: "quiet", text: t("There is no stored prompt of this session. The bot said nothing, or somebody's words were deleted.") }));
    } else {
      this.seen.replaceChildren(head, el("p", { text: counted(this.replies.length, "You can see how the bot made {count} reply of this session.", "You can see how the bot made {count} replies of this session.") }),
        el("p", {}, el("a", { class: "button primary", href: `#/history/${encodeURIComponent(this.session)}/reply/${this.replies[0].turn}`, text: t("Begin with the first") })));
    }
  }

  async showReply(turn) {
    const place = this.replies.findIndex((each) => each.turn === turn);
    const step = (index, words, id) => el("a", {
      id, class: "button plain", "aria-disabled": this.replies[index] ? null : "true",
      href: this.replies[index] ? `#/history/${encodeURIComponent(this.session)}/reply/${this.replies[index].turn}` : null, text: words,
    });
    const found = await ask(this.path(`/replies/${turn}`));
    this.drawMemory(found.cursor ?? undefined, turn);
    const most = found.max_tokens;
    const tokens = el("b", { text: counted(found.total_tokens, "{count} token", "{count} tokens") });
    put(this.seen,
      el("h2", { id: "seen-title", tabindex: "-1", text: t("What the model saw for turn {turn}", { turn: String(turn) }) }),
      el("div", { class: "steps" }, step(place - 1, t("← Previous"), "reply-before"),
        el("span", { class: "quiet", text: place < 0 ? "" : t("{number} of {total}", { number: place + 1, total: this.replies.length }) }), step(place + 1, t("Next →"), "reply-next")),
      el("p", {}, most
        ? around("{tokens} of {most}, at {time}", { tokens, most: written(most), time: time(found.at) })
        : around("{tokens}, at {time}", { tokens, time: time(found.at) })),
      tokenBar(found.tokens),
      el("ol", { class: "parts" }, found.calls.at(-1).parts.map(part)),
      found.sources.length ? el("details", {}, el("summary", { text: t("Where the summary comes from") }), el("ol", { class: "sources" }, found.sources.map((each) => this.source(each)))) : null,
      ...found.calls.slice(0, -1).map((call, number) => el("details", {}, el("summary", { text: t("Earlier request {number}, at {time}", { number: number + 1, time: time(call.at) }) }), el("ol", { class: "parts" }, call.parts.map(part)))));
  }

  source(each) {
    return el("li", {}, el("p", { lang: "", text: each.text }), el("p", { class: "quiet" }, each.turns.length ? `${t("turns")} ` : t("the words for this were deleted"),
      each.turns.map((seq, place) => [place ? ", " : "", el("a", { href: address(this.session, seq), text: seq })])));
  }
}

/* The tokens of a prompt by kind of part, as one bar. */
function tokenBar(tokens) {
  const total = Object.values(tokens).reduce((sum, each) => sum + each, 0) || 1;
  const words = Object.entries(tokens).map(([kind, each]) => `${PARTS[kind] || kind} ${written(each)}`).join(", ");
  const bar = el("div", { class: "token-bar", role: "img", "aria-label": words });
  for (const [kind, each] of Object.entries(tokens)) {
    const piece = el("span", { class: `kind-${kind}`, title: `${PARTS[kind] || kind}: ${counted(each, "{count} token", "{count} tokens")}` });
    piece.style.flexGrow = each / total;
    bar.append(piece);
  }
  return bar;
}

function part(each) {
  const where = each.from === null ? "" : each.from === each.to ? ` ${each.from}` : ` ${t("{first} to {last}", { first: String(each.from), last: String(each.to) })}`;
  const head = el("span", { class: "meta" }, el("span", { class: `swatch kind-${each.kind}`, "aria-hidden": "true" }), el("b", { text: `${PARTS[each.kind] || each.kind}${where}` }),
    el("span", { class: "quiet", text: ` ${counted(each.tokens, "{count} token", "{count} tokens")}` }));
  const body = el("pre", { class: each.withheld ? "withheld" : null, lang: each.withheld ? null : "", text: each.content });
  // Instructions are long and the same each time.
  if (each.kind === "system" || each.content.length > 1500) return el("li", {}, el("details", {}, el("summary", {}, head), body));
  return el("li", {}, head, body);
}
