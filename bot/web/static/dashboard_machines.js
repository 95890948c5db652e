/* The machines that have processes for rooms. No event tells of them, so the page asks. */
import { around, number, t } from "/page/text.js";
import { ask, el, time } from "./dom.js";

const ASK_MS = 15_000;

export async function showMachines(main, onState, isShown) {
  const rows = el("tbody", {});
  const columns = [t("Machine"), t("Rooms"), t("Processes with rooms"), t("Waiting"), t("Linked")];
  const read = async () => {
    const { machines } = await ask("/api/machines");
    rows.replaceChildren(...machines.map(row));
  };
  await read();
  main.replaceChildren(el("h1", { text: t("Machines"), tabindex: "-1" }),
    el("p", { class: "quiet", text: t("A process that waits is loaded: a room that begins or has lost its process gets it at once. A machine without processes is listed for a day. It was lost, or it left in order.") }),
    // A phone scrolls it to the side.
    el("div", { class: "card machines", role: "region", "aria-label": t("Machines"), tabindex: "0" }, el("table", {},
      el("thead", {}, el("tr", {}, columns.map((text) => el("th", { scope: "col", text })))), rows)));
  // The answer may come when another view is shown.
  const say = (text) => { if (isShown()) onState(text); };
  const asking = setInterval(() => {
    if (!isShown()) clearInterval(asking);
    else read().then(() => say(""), (failure) => (failure.status === 401 ? location.reload() : say(failure.message)));
  }, ASK_MS);
}

function row(load) {
  const counts = [load.rooms, load.with_rooms, load.waiting];
  return el("tr", {},
    el("th", { scope: "row" }, load.machine ? el("span", { lang: "", text: load.machine }) : t("The bot's own machine")),
    counts.map((count) => el("td", { text: number(count) })), el("td", {}, linked(load)));
}

function linked({ linked_since: since, gone_since: gone }) {
  if (gone !== null) return el("span", { class: "bad" }, around("gone since {time}", { time: time(gone, "day") }));
  return since === null ? "–" : around("since {time}", { time: time(since, "day") });
}
