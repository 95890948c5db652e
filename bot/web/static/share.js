/* The page that shows a screen to the bot.

   The link's token stands in the address's fragment, which no server and no log ever sees; it is used up by the first
   message of the web socket. A picture is sent when the screen has changed, at most twice a second; what you see in the
   preview is that very picture. Nothing is stored here but the secret with which a reloaded page may go on. */
import {
  addNote, announce, at, headline, link, page, passing, say, show, tick, trouble, what,
} from "./shown.js";

const RESUME_KEY = "roomtone-resume";
const GIVE_UP_MS = 120_000;
// Why nothing is shared, by what the browser calls it.
const NOT_SHARED = {
  NotAllowedError: "Nothing was chosen, or the browser or system did not allow it.",
  NotFoundError: "The browser found nothing that it could share.",
  NotReadableError: "The system does not let the browser see the screen: its privacy settings say who may record it.",
};
const REFUSALS = { too_large: "a picture was too large", wrong_size: "a picture had an odd size" };

// -- the line to the bot -----------------------------------------------------------------------------------------

function connect(hello) {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/share/socket`);
  socket.binaryType = "arraybuffer";
  page.socket = socket;
  page.heardAt = Date.now();
  socket.addEventListener("open", () => socket.send(JSON.stringify({ t: "hello", ...hello })));
  socket.addEventListener("message", (event) => {
    if (socket !== page.socket) return;
    page.heardAt = Date.now();
    if (typeof event.data === "string") hear(JSON.parse(event.data));
  });
  socket.addEventListener("close", () => {
    if (socket === page.socket) lost();
  });
}

/* Say something to the bot; return whether it could be said. */
function tell(message) {
  const open = Boolean(page.socket && page.socket.readyState === WebSocket.OPEN);
  if (open) page.socket.send(JSON.stringify(message));
  return open;
}

function hear(message) {
  switch (message.t) {
    case "welcome": return welcomed(message);
    case "note": return addNote(message.what);
    case "trouble": return trouble("reading", message.sentence);
    case "refused": return passing("refused",
      `${page.bot} refused a picture: ${REFUSALS[message.reason] || "it could not be read"}.`);
    case "ended": return over("ended", message.sentence);
    case "denied": return page.capture ? over("ended", message.sentence) : over("denied", message.sentence);
    default: return undefined;
  }
}

function welcomed(message) {
  page.bot = message.bot;
  page.limits = message.limits;
  page.resume = message.resume;
  page.brokenSince = null;
  page.attempts = 0;
  sessionStorage.setItem(RESUME_KEY, message.resume);
  // The link is used up: it stays neither in the address nor in the history.
  history.replaceState(null, "", location.pathname);
  for (const each of document.querySelectorAll("[data-bot]")) each.textContent = message.bot;
  at("place").textContent = `${message.room} · ${message.server}`;
  at("place").hidden = false;
  at("ready-who").textContent = `You are ${message.who}, in ${message.room} on ${message.server}.`;
  at("ready-reading").textContent = message.reading;
  at("sharing-with").textContent = `with ${message.bot} in ${message.room}`;
  link(true);
  trouble("connection", "");
  trouble("reading", message.trouble);
  if (page.capture) {
    announce("Connected again.");
    if (!message.sharing || !page.capture.told) start(page.capture);
    // What changed meanwhile was not sent: the latest picture is.
    page.capture.lens.postMessage({ again: true });
  } else if (message.sharing) {
    // Stopped or reloaded while the connection was broken: nothing comes any more. The bot answers with `ended`.
    tell({ t: "stop" });
  } else {
    say("choose-problem", "");
    show("ready", `You can share your screen with ${message.bot} now.`);
  }
}

function lost() {
  page.socket = null;
  if (["ended", "denied"].includes(page.state)) return;
  link(false);
  page.brokenSince ??= Date.now();
  if (Date.now() - page.brokenSince > GIVE_UP_MS) {
    if (page.capture) over("ended", `${page.bot} cannot be reached any more.`);
    else over("denied", `${page.bot} cannot be reached. Type /watch start in Discord to try again.`);
    return;
  }
  const hello = page.resume ? { resume: page.resume } : firstHello();
  if (!hello) return;
  if (page.state === "sharing") trouble("connection", "The connection broke. Trying again…");
  else if (page.state === "opening") at("opening-lead").textContent = waiting();
  else problem("The connection broke. Trying again…");
  const wait = Math.min(1000 * 2 ** page.attempts++, 15_000);
  setTimeout(() => { if (!page.socket) connect(hello); }, wait);
}

function waiting() {
  const told = "The bot cannot be reached yet. Trying again…";
  if (page.attempts < 3) return told;
  return `${told} If this goes on, tell whoever runs it: this page’s address may not be its PUBLIC_URL.`;
}

function over(state, sentence) {
  endCapture();
  const socket = page.socket;
  page.socket = null;
  page.resume = null;
  sessionStorage.removeItem(RESUME_KEY);
  if (socket) socket.close();
  at(state === "ended" ? "ended-why" : "denied-why").textContent = sentence;
  show(state, sentence);
}

function firstHello() {
  const token = location.hash.slice(1);
  if (token) return { token };
  const resume = sessionStorage.getItem(RESUME_KEY);
  return resume ? { resume } : null;
}

// -- the screen ---------------------------------------------------------------------------------------------------

/* Say what is wrong before anything is shared. */
function problem(sentence) {
  say("choose-problem", sentence);
  announce(sentence);
}

/* Let the person choose; null when nothing came of it: `fail` is told why. */
async function chosen(button, fail) {
  button.disabled = true;
  try {
    return await navigator.mediaDevices.getDisplayMedia({
      video: { frameRate: { max: 5 } }, audio: false, selfBrowserSurface: "exclude", surfaceSwitching: "include",
    });
  } catch (error) {
    fail(NOT_SHARED[error.name] || `The browser could not share a screen (${error.name}).`);
    return null;
  } finally {
    button.disabled = false;
    button.focus();
  }
}

function letGo(stream) {
  for (const each of stream.getTracks()) each.stop();
}

async function choose() {
  say("choose-problem", "");
  const stream = await chosen(at("choose"), (why) => problem(`${why} You can choose again.`));
  if (!stream) return;
  if (page.state !== "ready") {
    letGo(stream);
    return;
  }
  page.startedAt = Date.now();
  page.troubles = {};
  at("notes").replaceChildren();
  at("no-notes").hidden = false;
  begin(stream);
  show("sharing", `You are sharing ${what()} with ${page.bot}.`);
  at("stop").focus();
}

/* Share something else, over the same line: whoever thinks better of it goes on with what was there. */
async function change() {
  const stream = await chosen(at("change"), (why) => passing("choice", `${why} You are sharing as before.`));
  if (!stream) return;
  if (page.state !== "sharing") {
    letGo(stream);
    return;
  }
  endCapture();
  trouble("muted", "");
  at("preview-caption").textContent = "Waiting for the first picture…";
  at("preview").getContext("2d").clearRect(0, 0, at("preview").width, at("preview").height);
  begin(stream);
  announce(`You are sharing ${what()} with ${page.bot} now.`);
}

function start(capture) {
  capture.told = tell({ t: "start", surface: capture.surface });
}

function begin(stream) {
  const track = stream.getVideoTracks()[0];
  const surface = track.getSettings().displaySurface || "";
  const capture = { stream, track, surface, told: false, stopped: false, lens: newLens(), reader: null };
  page.capture = capture;
  capture.lens.addEventListener("message", ({ data }) => send(capture, data.jpeg));
  capture.lens.postMessage({ limits: page.limits });
  page.sentAt = 0;
  track.addEventListener("ended", () => stop());
  track.addEventListener("mute", () => trouble("muted", "Your screen sends no pictures now: is the window minimised?"));
  track.addEventListener("unmute", () => trouble("muted", ""));
  headline();
  start(capture);
  if ("MediaStreamTrackProcessor" in window) follow(capture);
  else watch(capture);
}

function stop() {
  if (!page.capture) return;
  tell({ t: "stop" });
  endCapture();
  // The bot answers with `ended`; where it can't, the person should see it all the same.
  setTimeout(() => { if (page.state === "sharing") over("ended", "You stopped sharing."); }, 1500);
}

function endCapture() {
  const capture = page.capture;
  if (!capture) return;
  page.capture = null;
  capture.stopped = true;
  capture.lens.terminate();
  if (capture.reader) capture.reader.cancel().catch(() => undefined);
  for (const each of capture.stream.getTracks()) each.stop();
}

/* Frames as the browser makes them: no timer slows this in a tab behind the game. */
async function follow(capture) {
  const processor = new MediaStreamTrackProcessor({ track: capture.track, maxBufferSize: 1 });
  capture.reader = processor.readable.getReader();
  for (;;) {
    const { value: frame, done } = await capture.reader.read().catch(() => ({ done: true }));
    if (done || capture.stopped) {
      if (frame) frame.close();
      return;
    }
    capture.lens.postMessage({ picture: frame }, [frame]);
  }
}

/* Browsers without the above: a video that nobody sees, looked at by the clock. */
function watch(capture) {
  const video = document.createElement("video");
  video.muted = true;
  video.playsInline = true;
  video.srcObject = capture.stream;
  video.play().catch(() => undefined);
  const every = setInterval(async () => {
    if (capture.stopped) {
      clearInterval(every);
      video.srcObject = null;
    } else if (video.videoWidth) {
      const picture = await createImageBitmap(video).catch(() => null);
      if (picture && !capture.stopped) capture.lens.postMessage({ picture }, [picture]);
    }
  }, 1000 / page.limits.looked_per_s);
}

/* What looks at the pictures, in a thread of its own. */
function newLens() {
  const address = "/share/lens.js";
  if (!window.trustedTypes) return new Worker(address);
  page.policy ??= trustedTypes.createPolicy("roomtone", { createScriptURL: () => address });
  return new Worker(page.policy.createScriptURL(address));
}

/* Send a picture that the lens found worth it; one that can't go now is dropped, and a later one goes. */
function send(capture, jpeg) {
  if (capture.stopped) return;
  const socket = page.socket;
  const open = socket && socket.readyState === WebSocket.OPEN && page.brokenSince === null;
  const sent = Boolean(open && socket.bufferedAmount <= page.limits.max_buffered_bytes);
  if (sent) {
    socket.send(jpeg);
    page.sentAt = Date.now();
    page.sent += 1;
    document.body.dataset.sent = String(page.sent);
    preview(new Blob([jpeg], { type: "image/jpeg" }));
  }
  capture.lens.postMessage({ sent });
}

/* Show what was sent: the sent picture itself, decoded again. */
async function preview(blob) {
  if (document.hidden) {
    page.unseen = blob;
    return;
  }
  page.unseen = null;
  const bitmap = await createImageBitmap(blob);
  const canvas = at("preview");
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();
  tick();
}

// -- beginning ----------------------------------------------------------------------------------------------------

function open() {
  if (!window.isSecureContext) return show("insecure");
  if (!navigator.mediaDevices || !navigator.mediaDevices.getDisplayMedia || !window.WebSocket) return show("phone");
  const hello = firstHello();
  if (!hello) {
    return over("denied", "This address has no link in it. Type /watch start in Discord and follow the link you get.");
  }
  return connect(hello);
}

at("choose").addEventListener("click", choose);
at("change").addEventListener("click", change);
at("stop").addEventListener("click", stop);
addEventListener("pagehide", () => {
  if (page.capture) {
    tell({ t: "stop" });
    endCapture();
  }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && page.unseen) preview(page.unseen);
});
setInterval(tick, 1000);
setInterval(() => {
  tell({ t: "ping" });
  // The bot answers each ping: a line that is silent for three of them is none.
  if (page.socket && Date.now() - page.heardAt > 3000 * page.limits.ping_s + 60_000) page.socket.close();
}, 1000 * page.limits.ping_s);
open();
