/* What happens in the rooms, as the bot tells it: one connection of server-sent events for the view that is shown. */
import { t } from "/page/text.js";
import { ask } from "./dom.js";

const KINDS = [
  "interim", "heard", "turn", "note", "reply", "packets", "queues", "people", "cost", "fold", "dropped", "prompt", "faults", "problem",
  "opened", "closed", "reset", "again",
];
// Until a page that gets nothing from the bot tries again.
const RETRY_MS = 5_000;

let events = null;

/* Show what `read` reads, and follow what happens after it. `read` returns the number of the last event that is in what it
   has read. `listener(kind, data)` gets every event after that, and returns whether to read anew. */
export async function keepUp(read, listener, onState, isShown) {
  const begin = async () => {
    const mark = await read();
    if (isShown()) follow(mark, on, again, onState);
  };
  const on = (kind, data) => {
    if (listener(kind, data)) again();
  };
  const again = () => {
    // The events are those of the next view by now.
    if (!isShown()) return;
    stopFollowing();
    begin().catch(failed);
  };
  const failed = (failure) => {
    if (!isShown()) return;
    if (failure.status === 401) location.reload();
    onState(failure.message);
    setTimeout(again, RETRY_MS);
  };
  await begin();
}

/* Follow the rooms from an event on. `again`: called some time after the bot has refused that. */
function follow(mark, listener, again, onState) {
  stopFollowing();
  const source = new EventSource(`/api/events?since=${encodeURIComponent(mark)}`);
  events = source;
  source.addEventListener("open", () => onState(""));
  source.addEventListener("error", async () => {
    if (source !== events) return;
    if (source.readyState !== EventSource.CLOSED) {
      onState(t("The page is not connected to the bot. Trying again…"));
      return;
    }
    // The browser does not try again after an error: logged out, too many pages, or a proxy whose bot is being started.
    const failure = await ask("/api/rooms").then(() => null, (error) => error);
    if (source !== events) return;
    if (failure && failure.status === 401) location.reload();
    onState(failure ? failure.message : t("This page gets no more news. Perhaps too many pages are open: close one."));
    setTimeout(() => { if (source === events) again(); }, RETRY_MS);
  });
  for (const kind of KINDS) source.addEventListener(kind, (event) => listener(kind, JSON.parse(event.data)));
}

export function stopFollowing() {
  if (events) events.close();
  events = null;
}

addEventListener("pagehide", stopFollowing);
