/* The page of the open rooms, and of one room as it lives.

   A room's page is read once as a whole and then moved by the events after that; when the bot says that words were
   forgotten or events were missed, it is read anew. */
import { costChart, latencyChart, MemoryPicture, packetChart, queueChart } from "./charts.js";
import { around, counted, number, t } from "/page/text.js";
import { ask, Colours, el, PARTS, time, turnItem } from "./dom.js";
import { keepUp } from "./events.js";

const MOST_TURNS = 300;
const MOST_NOTES = 40;
const MOST_MEASURED = 120;
const MOST_REPLIES = 24;
// An utterance is cut after 30 s.
const LONGEST_INTERIM_MS = 40_000;
const SOURCE = { ocr: t("read as text"), model: t("seen by the model") };

/* The list of rooms. If there is one room only, it is shown itself. */
export async function showRooms(main, onState, isShown) {
  const list = el("ul", { class: "cards" });
  const draw = (shown) => {
    empty.hidden = shown.length > 0;
    list.replaceChildren(...shown.map((room) => el("li", { class: "card" },
      el("h2", {}, el("a", { href: `#/room/${encodeURIComponent(room.session)}`, lang: "", text: room.room })),
      el("p", { class: "quiet", lang: "", text: room.guild }),
      el("p", { text: `${counted(room.people, "{count} person", "{count} people")}, ${counted(room.turns, "{count} turn", "{count} turns")}` }))));
  };
  const empty = el("section", { class: "card empty" }, el("h2", { text: t("The bot is in no voice channel") }),
    el("p", {}, around("Join a voice channel, then type {command} in Discord. Here you will see at once what you say.", { command: el("kbd", { text: t("/join") }) })),
    el("p", {}, around("What was said before is in the {history}.", { history: el("a", { href: "#/history", text: t("history") }) })));
  const title = el("h1", { text: t("Live"), tabindex: "-1" });
  let only = null;
  const read = async () => {
    const { rooms, mark } = await ask("/api/rooms");
    if (rooms.length === 1) {
      if (!only || only.session !== rooms[0].session) only = new Room(main, rooms[0].session);
      return only.read();
    }
    only = null;
    if (title.parentNode !== main) main.replaceChildren(title, empty, list);
    draw(rooms);
    return mark;
  };
  const listener = (kind, data) => (only && !(only.over && kind === "opened")
    ? only.on(kind, data) : ["opened", "closed", "again"].includes(kind));
  await keepUp(read, listener, onState, isShown);
}

export async function showRoom(main, session, onState, isShown) {
  const room = new Room(main, session);
  return keepUp(() => room.read(), (kind, data) => room.on(kind, data), onState, isShown);
}

class Room {
  constructor(main, session) {
    this.session = session;
    this.main = main;
    this.colours = new Colours();
    this.speakers = new Map();
    this.heard = new Map();
    // The unfinished words of each speaker.
    this.interims = new Map();
    this.picture = new MemoryPicture();
    this.over = false;
    this.build();
  }

  build() {
    const panel = (id, title, ...content) => el("section", { class: `card ${id}`, "aria-labelledby": `${id}-title` },
      el("h2", { id: `${id}-title`, text: title }), ...content);
    this.title = el("h1", { tabindex: "-1" });
    this.place = el("p", { class: "quiet place" });
    this.turns = el("ol", {});
    this.log = el("div", { class: "turns", role: "log", "aria-live": "off", "aria-label": t("The conversation"), tabindex: "0" }, this.turns);
    // A narrower window makes the turns longer: who was at their end stays there.
    this.follows = true;
    this.log.addEventListener("scroll", () => { this.follows = this.isAtEnd(); });
    new ResizeObserver(() => { if (this.follows) this.toEnd(); }).observe(this.turns);
    this.nothing = el("p", { class: "quiet", text: t("Nobody has said anything yet.") });
    this.aloud = el("input", { type: "checkbox", id: "aloud", onchange: () => this.log.setAttribute("aria-live", this.aloud.checked ? "polite" : "off") });
    this.unfinished = el("input", { type: "checkbox", id: "unfinished", checked: "", onchange: () => this.log.classList.toggle("whole", !this.unfinished.checked) });
    this.people = el("ul", { class: "people" });
    this.status = el("div", { class: "quiet" });
    this.summary = el("p", { class: "summary", lang: "" });
    this.unfolded = el("p", { text: t("There is no summary yet, and the bot still has every word.") });
    this.summaryChars = el("p", { class: "quiet" });
    this.lastFold = el("p", { class: "quiet", role: "status" });
    this.notes = el("ol", { class: "notes" });
    this.noNotes = el("p", { class: "quiet", text: t("Nobody shares a screen.") });
    this.faults = el("ul", { class: "problems" });
    this.problems = el("ul", { class: "problems" });
    this.charts = Object.fromEntries(["latency", "packets", "queues", "cost"].map((name) => [name, el("div")]));
    this.dropped = el("p", { class: "quiet" });
    this.prompt = el("p", { class: "quiet" });
    // Shown once the room has been read: there may be none.
    this.panels = el("div", { class: "room", hidden: true },
      el("div", { class: "column wide" },
        panel("memory", t("Memory"), this.picture.root, this.lastFold),
        panel("conversation", t("Conversation"), el("label", { class: "aloud", for: "aloud" }, this.aloud, ` ${t("Let a screen reader speak new lines")}`),
          el("label", { class: "aloud", for: "unfinished" }, this.unfinished, ` ${t("Show words while somebody is still speaking")}`),
          this.nothing, this.log),
        panel("so-far", t("Summary"), this.unfolded, this.summary, this.summaryChars),
        panel("screens", t("Screen notes"), this.noNotes, this.notes)),
      el("div", { class: "column" },
        panel("present", t("In the channel"), this.people, this.status),
        panel("latency", t("Time to an answer"), this.charts.latency, this.prompt),
        panel("cost", t("Cost"), this.charts.cost),
        el("details", { class: "card engineers" }, el("summary", { text: t("For engineers") }),
          panel("packets", t("Packets"), this.charts.packets, this.dropped),
          panel("queues", t("Queues"), this.charts.queues))));
    this.main.replaceChildren(
      el("div", { class: "head" }, this.title, this.place), el("div", { role: "status" }, this.faults, this.problems), this.panels);
  }

  /* Read everything anew. Returns the number of the last event that is in it. */
  async read() {
    let found;
    try {
      found = await ask(`/api/rooms/${encodeURIComponent(this.session)}`);
    } catch (failure) {
      if (failure.status !== 404) throw failure;
      if (!this.data) this.title.textContent = t("Not found");
      this.close(failure.message);
      return "";
    }
    this.data = found;
    this.panels.hidden = false;
    this.over = false;
    this.speakers = new Map();
    this.colours.meet(found.memory.speakers);
    found.memory.by_turn.forEach((speaker, seq) => this.speakers.set(seq, this.colours.of(found.memory.speakers[speaker] ?? "")));
    this.heard.clear();
    this.interims.clear();
    this.title.replaceChildren(el("span", { lang: "", text: found.room }));
    this.place.replaceChildren(el("span", { lang: "", text: found.guild }), " · ", ...around("since {time}", { time: time(found.opened_at, "short") }));
    this.turns.replaceChildren();
    for (const turn of found.turns) this.addTurn(turn);
    this.toEnd();
    this.notes.replaceChildren();
    for (const note of found.notes) this.addNote(note);
    this.noNotes.hidden = found.notes.length > 0;
    this.showPeople(found.present);
    this.showFold(found.memory);
    this.showFaults(found.faults);
    this.problems.replaceChildren();
    for (const problem of found.problems) this.addProblem(problem);
    this.showDropped(found.dropped);
    this.costPasses = true;
    this.drawCharts();
    document.body.dataset.room = this.session;
    return found.mark;
  }

  /* Show what an event tells. Returns whether to read everything anew. */
  on(kind, data) {
    if (kind === "again") return true;
    // The room goes on in another process, or after a failure.
    if (kind === "opened") return this.over && data.room.session === this.session;
    if (data.session !== this.session || this.over) return false;
    switch (kind) {
      case "reset": return true;
      case "closed": this.close(); break;
      case "interim": this.showInterim(data); break;
      case "heard": this.addHeard(data); break;
      case "turn": this.onTurn(data); break;
      case "note": this.addNote(data.note); this.noNotes.hidden = true; break;
      case "people": this.showPeople(data); break;
      case "fold": this.onFold(data); break;
      case "dropped": this.showDropped(data.dropped); this.dropHeard(data.id); break;
      case "prompt": this.showPrompt(data.tokens); break;
      case "faults": this.showFaults(data.faults); break;
      case "problem": this.addProblem(data.problem); break;
      case "reply": this.measure(this.data.replies, data.reply, MOST_REPLIES); break;
      case "packets": this.data.link = data.link; this.measure(this.data.packets, data.packets, MOST_MEASURED); break;
      case "queues": this.measure(this.data.queues, data.queues, MOST_MEASURED); break;
      case "cost": this.onCost(data); break;
      default: break;
    }
    return false;
  }

  /* Show that there is no room any more. `why`: what the bot answered; without it, the room has just ended. */
  close(why) {
    this.over = true;
    const history = el("a", { href: `#/history/${encodeURIComponent(this.session)}`, text: t("history") });
    this.faults.replaceChildren();
    this.problems.replaceChildren(el("li", { class: "over" }, why
      ? [`${why} `, around("What was said before is in the {history}.", { history })]
      : around("The bot has left this channel. The session is in the {history}.", { history })));
  }

  // -- the conversation ---------------------------------------------------------------------------------------------

  /* Change the list of turns; stay at its end if the reader was there. */
  atEnd(change) {
    const follows = this.isAtEnd();
    change();
    this.nothing.hidden = this.turns.childElementCount > 0;
    if (follows) this.toEnd();
  }

  isAtEnd() {
    const { log } = this;
    return log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  }

  toEnd() {
    this.log.scrollTop = this.log.scrollHeight;
  }

  /* A line whose words are not a turn yet. */
  heardItem(data, kind) {
    return el("li", { class: `turn heard ${kind}` }, el("div", { class: "meta" }, el("span", { text: t("hearing…") })),
      el("div", { class: "words" }, el("p", {}, el("b", { class: "who", "data-colour": this.colours.of(data.speaker), lang: "", text: data.who }), " ", el("span", { class: "said", lang: "", text: data.text }))));
  }

  /* Unfinished words replace the speaker's former ones; without a text they are over. A screen reader speaks only what
     stays. */
  showInterim(data) {
    this.atEnd(() => {
      const before = this.interims.get(data.speaker);
      if (before) {
        clearTimeout(before.timer);
        before.item.remove();
        this.interims.delete(data.speaker);
      }
      if (!data.text) return;
      const item = this.heardItem(data, "interim");
      // Their end may have come while the connection was lost.
      item.setAttribute("aria-hidden", "true");
      const timer = setTimeout(() => {
        if (this.interims.get(data.speaker)?.item === item) this.showInterim({ ...data, text: "" });
      }, LONGEST_INTERIM_MS);
      this.interims.set(data.speaker, { item, timer });
      this.turns.append(item);
    });
  }

  addHeard(data) {
    this.showInterim({ ...data, text: "" });
    this.atEnd(() => {
      const item = this.heardItem(data, "");
      this.heard.set(data.id, item);
      this.turns.append(item);
      if (this.heard.size > 40) this.dropHeard(this.heard.keys().next().value);
    });
  }

  dropHeard(id) {
    const item = this.heard.get(id);
    if (item) item.remove();
    this.heard.delete(id);
  }

  onTurn(data) {
    this.atEnd(() => {
      for (const id of data.heard) this.dropHeard(id);
      const before = this.turns.querySelector(`[data-seq="${data.turn.seq}"]`);
      if (before) before.remove();
      this.addTurn(data.turn);
    });
    const memory = this.data.memory;
    memory.total = Math.max(data.total, memory.total);
    this.drawMemory();
  }

  addTurn(turn) {
    const item = turnItem(turn, this.colours);
    this.speakers.set(turn.seq, turn.parts.length ? this.colours.of(turn.parts[0].id) : "none");
    const later = [...this.heard.values()][0];
    if (later && later.parentNode) later.before(item);
    else this.turns.append(item);
    while (this.turns.childElementCount > MOST_TURNS) this.turns.firstElementChild.remove();
    this.nothing.hidden = true;
  }

  // -- memory -------------------------------------------------------------------------------------------------------

  drawMemory() {
    this.picture.show(this.data.memory, (seq) => this.speakers.get(seq) ?? "none");
  }

  showFold(memory) {
    this.data.memory = memory;
    this.summary.textContent = memory.summary;
    this.unfolded.hidden = Boolean(memory.summary);
    this.summaryChars.textContent = memory.summary ? t("{number} of at most {most} characters", { number: memory.summary.length, most: 1200 }) : "";
    this.drawMemory();
    this.showLastFold(memory.folds.at(-1));
  }

  onFold(data) {
    const before = this.data.memory;
    const made = data.folds.at(-1);
    const segments = [...before.segments];
    if (made && made.to > made.from && !segments.some((each) => each.start === made.from)) {
      segments.push({ start: made.from, end: made.to, facts: 0, gist: "" });
    }
    this.showFold({ ...before, ...data, segments });
  }

  showLastFold(made) {
    if (!made) return;
    const values = { time: time(made.at), first: String(made.from), last: String(made.to - 1), seconds: number(made.ms / 1000, 1) };
    this.lastFold.replaceChildren(...(made.to > made.from
      ? around("Last summary at {time}, of turns {first} to {last}. It took {seconds} seconds.", values)
      : around("Last summary at {time}. The bot made it better.", values)));
  }

  // -- beside it ----------------------------------------------------------------------------------------------------

  showPeople(present) {
    this.people.replaceChildren(...present.people.map((person) => el("li", {},
      el("b", { class: "who", "data-colour": person.bot ? "bot" : this.colours.of(person.id), lang: "", text: person.name }),
      person.bot ? el("span", { class: "tag", text: t("bot") }) : null,
      person.heard || person.bot ? null : el("span", { class: "tag", text: t("not heard") }))));
    this.status.replaceChildren(...present.status.split("\n").map((sentence) => el("p", { text: sentence })));
  }

  addNote(note) {
    if ([...this.notes.children].some((each) => each.dataset.note === note.id)) return;
    this.notes.prepend(el("li", { "data-note": note.id }, el("div", { class: "meta" }, time(note.at),
      el("span", { class: "tag", text: SOURCE[note.source] || note.source })),
    el("p", {}, el("b", { lang: "", text: note.who }), " ", el("span", { lang: "", text: note.what }))));
    while (this.notes.childElementCount > MOST_NOTES) this.notes.lastElementChild.remove();
  }

  /* What is wrong now, each with since when. */
  showFaults(faults) {
    this.faults.replaceChildren(...faults.map((fault) => el("li", {}, time(fault.since, "short"), ` ${fault.sentence}`)));
  }

  addProblem(problem) {
    this.problems.append(el("li", {}, time(problem.at), ` ${problem.sentence}`));
    while (this.problems.childElementCount > 3) this.problems.firstElementChild.remove();
  }

  showDropped(dropped) {
    this.dropped.textContent = dropped ? t("Sounds that the bot ignored: {reasons}.", { reasons: dropped }) : "";
  }

  showPrompt(tokens) {
    const total = Object.values(tokens).reduce((sum, each) => sum + each, 0);
    const parts = Object.entries(tokens).map(([kind, each]) => `${PARTS[kind] || kind} ${number(each)}`);
    this.prompt.textContent = t("Last prompt: {total} tokens ({parts}).", { total, parts: parts.join(", ") });
  }

  measure(samples, sample, most) {
    samples.push(sample);
    while (samples.length > most) samples.shift();
    this.drawCharts();
  }

  /* The last sample is what the hour has cost by now, until a sample is kept. */
  onCost(data) {
    if (this.costPasses) this.data.costs.pop();
    this.costPasses = !data.kept;
    this.measure(this.data.costs, data.cost, MOST_MEASURED);
  }

  drawCharts() {
    const { replies, packets, queues, costs, ceiling, link } = this.data;
    this.charts.latency.replaceChildren(latencyChart(replies));
    this.charts.packets.replaceChildren(packetChart(packets, link));
    this.charts.queues.replaceChildren(queueChart(queues));
    this.charts.cost.replaceChildren(costChart(costs, ceiling));
  }
}
