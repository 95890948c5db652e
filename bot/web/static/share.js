/* The page that shares a screen with the bot.

   The link's token is in the URL's fragment, which no server and no log sees; the first message of the web socket uses
   it up. A picture is sent when the screen has changed, at most twice a second; the preview shows the picture that was
   sent. Only the secret with which a reloaded page can reconnect is stored. */
import { t } from "/page/text.js";
import { keepSecret, keptSecret } from "./secret.js";
import {
  addNote, announce, at, briefTrouble, page, setConnected, setHeadline, setText, sharing, show, tick, trouble,
} from "./view.js";

const GIVE_UP_MS = 120_000;
// The bot looks at two or three pictures a second; capturing more costs the person's game.
const MAX_FRAMES_PER_S = 5;
// Chromium enforces the limit above by dropping frames. If the frame it drops is the last one before the screen stands
// still, no other follows. With a minimum rate it repeats the picture of a still screen.
const MIN_FRAMES_PER_S = 1;
// Several times as long as between two frames, for a busy machine.
const LAST_FRAME_MS = 5_000;
// A picture that the bot did not take is sent again after a pause. Each further refusal doubles the pause, until none has
// come for the last of these times after a picture was sent again. One whose way to another process fails is refused
// after up to 30 s.
const RESEND_MS = 2_000;
const LONGEST_RESEND_MS = 60_000;
const SETTLED_MS = 40_000;
// Sentences for the browser's errors.
const SHARE_ERRORS = {
  NotAllowedError: t("You chose nothing, or your browser or your system did not allow it."),
  NotFoundError: t("Your browser found nothing to share."),
  NotReadableError: t("Your system does not let the browser see your screen. You can change this in the privacy settings of your system."),
};

// -- the web socket ----------------------------------------------------------------------------------------------

function connect(hello) {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/share/socket`);
  socket.binaryType = "arraybuffer";
  page.socket = socket;
  page.lastMessageAt = Date.now();
  socket.addEventListener("open", () => socket.send(JSON.stringify({ t: "hello", ...hello })));
  socket.addEventListener("message", (event) => {
    if (socket !== page.socket) return;
    page.lastMessageAt = Date.now();
    if (typeof event.data === "string") handleMessage(JSON.parse(event.data));
  });
  socket.addEventListener("close", () => {
    if (socket === page.socket) connectionLost();
  });
}

/* Send a message to the bot; return whether it was sent. */
function sendMessage(message) {
  const open = Boolean(page.socket && page.socket.readyState === WebSocket.OPEN);
  if (open) page.socket.send(JSON.stringify(message));
  return open;
}

function handleMessage(message) {
  switch (message.t) {
    case "welcome": return handleWelcome(message);
    case "note": return addNote(message.what);
    case "trouble": return trouble("reading", message.sentence);
    case "refused": return pictureRefused(message.reason);
    case "ended": return finish("ended", message.sentence);
    case "denied": return finish(hasShared(message.reason) ? "ended" : "denied", message.sentence);
    default: return undefined;
  }
}

/* Return whether a page that is denied shared before. One that is reloaded while it shares comes back to a share that is
   over; one that is ready has shared nothing. */
function hasShared(reason) {
  return Boolean(page.capture) || (reason === "ended" && page.state !== "ready");
}

function handleWelcome(message) {
  page.bot = message.bot;
  page.limits = message.limits;
  page.resume = message.resume;
  page.brokenSince = null;
  page.attempts = 0;
  keepSecret(message.resume);
  // The link is used up; remove it from the address and the history.
  history.replaceState(null, "", location.pathname);
  for (const each of document.querySelectorAll("[data-bot]")) each.textContent = message.bot;
  at("place").textContent = `${message.room} · ${message.server}`;
  at("place").hidden = false;
  at("ready-who").textContent = t("You are {who}, in {room} on {server}.", message);
  at("ready-reading").textContent = message.reading;
  at("sharing-with").textContent = t("with {bot} in {room}", message);
  setConnected(true);
  trouble("connection", "");
  trouble("reading", message.trouble);
  if (page.capture) {
    announce(t("Connected again."));
    if (!message.sharing || !page.capture.startSent) start(page.capture);
    // Changes were not sent meanwhile, so send the latest picture again.
    page.capture.worker.postMessage({ again: true });
  } else if (message.sharing) {
    // Stopped or reloaded while disconnected, so nothing is shared any more. The bot answers with `ended`.
    sendMessage({ t: "stop" });
  } else {
    setText("choose-problem", "");
    show("ready", t("You can share your screen with {bot} now.", message));
  }
}

function connectionLost() {
  page.socket = null;
  if (["ended", "denied"].includes(page.state)) return;
  setConnected(false);
  page.brokenSince ??= Date.now();
  if (Date.now() - page.brokenSince > GIVE_UP_MS) {
    if (page.capture) finish("ended", t("This page can no longer reach {bot}.", page));
    else finish("denied", t("This page cannot reach {bot}. Type /watch start in Discord to try again.", page));
    return;
  }
  const hello = page.resume ? { resume: page.resume } : firstHello();
  if (!hello) return;
  if (page.state === "sharing") trouble("connection", t("The connection broke. Trying again…"));
  else if (page.state === "opening") at("opening-lead").textContent = retryMessage();
  else showProblem(t("The connection broke. Trying again…"));
  const wait = Math.min(1000 * 2 ** page.attempts++, 15_000);
  setTimeout(() => { if (!page.socket) connect(hello); }, wait);
}

function retryMessage() {
  const sentence = t("This page cannot reach the bot yet. Trying again…");
  if (page.attempts < 3) return sentence;
  return `${sentence} ${t("If this does not stop, tell the owner of the bot. Perhaps PUBLIC_URL is not the address of this page.")}`;
}

function finish(state, sentence) {
  endCapture();
  const socket = page.socket;
  page.socket = null;
  page.resume = null;
  keepSecret(null);
  if (socket) socket.close();
  at(state === "ended" ? "ended-why" : "denied-why").textContent = sentence;
  show(state, sentence);
}

function firstHello() {
  const token = location.hash.slice(1);
  if (token) return { token };
  const resume = keptSecret();
  return resume ? { resume } : null;
}

// -- the screen ---------------------------------------------------------------------------------------------------

/* Show why nothing is shared yet. */
function showProblem(sentence) {
  setText("choose-problem", sentence);
  announce(sentence);
}

/* Let the person choose what to share. Returns the stream, or null after calling `fail` with the reason. */
async function requestStream(button, fail) {
  button.disabled = true;
  try {
    return await navigator.mediaDevices.getDisplayMedia({
      video: { frameRate: { max: MAX_FRAMES_PER_S } },
      audio: false,
      selfBrowserSurface: "exclude",
      surfaceSwitching: "include",
    });
  } catch (error) {
    fail(SHARE_ERRORS[error.name] || t("Your browser could not share a screen ({error}).", { error: error.name }));
    return null;
  } finally {
    button.disabled = false;
    button.focus();
  }
}

function stopTracks(stream) {
  for (const each of stream.getTracks()) each.stop();
}

async function choose() {
  setText("choose-problem", "");
  const stream = await requestStream(at("choose"), (why) => showProblem(`${why} ${t("You can choose again.")}`));
  if (!stream) return;
  if (page.state !== "ready") {
    stopTracks(stream);
    return;
  }
  page.startedAt = Date.now();
  page.troubles = {};
  at("notes").replaceChildren();
  at("no-notes").hidden = false;
  begin(stream);
  show("sharing", `${sharing()}.`);
  at("stop").focus();
}

/* Share something else over the same connection. If the person cancels, the present share goes on. */
async function change() {
  const stream = await requestStream(at("change"), (why) => briefTrouble("choice", `${why} ${t("You still share the same as before.")}`));
  if (!stream) return;
  const former = page.capture;
  if (former) await lastFrame(former);
  // Sharing may have ended meanwhile.
  if (!former || page.capture !== former) {
    stopTracks(stream);
    return;
  }
  endCapture();
  trouble("muted", "");
  at("preview-caption").textContent = t("Waiting for the first picture…");
  at("preview").getContext("2d").clearRect(0, 0, at("preview").width, at("preview").height);
  begin(stream);
  announce(`${sharing()}.`);
}

function start(capture) {
  capture.startSent = sendMessage({ t: "start", surface: capture.surface });
}

function begin(stream) {
  const track = stream.getVideoTracks()[0];
  const surface = track.getSettings().displaySurface || "";
  const capture = {
    stream, track, surface, startSent: false, stopped: false, worker: newWorker(), refusals: 0, waits: false, resending: 0,
  };
  page.capture = capture;
  capture.worker.addEventListener("message", ({ data }) => sendPicture(capture, data.jpeg));
  // Its script did not come, or needs what an old browser does not have.
  capture.worker.addEventListener("error", () => {
    if (capture.stopped) return;
    sendMessage({ t: "stop" });
    finish("ended", t("This browser could not start the part of the page that sends pictures. Try again, or use a newer browser."));
  });
  capture.worker.postMessage({ limits: page.limits });
  page.sentAt = 0;
  track.addEventListener("ended", () => stop());
  track.addEventListener("mute", () => trouble("muted", t("Your screen sends no pictures now. Have you minimised the window?")));
  track.addEventListener("unmute", () => trouble("muted", ""));
  // Not possible before: `getDisplayMedia` refuses a minimum.
  track.applyConstraints({ frameRate: { min: MIN_FRAMES_PER_S, max: MAX_FRAMES_PER_S } }).catch(() => undefined);
  setHeadline();
  start(capture);
  if ("MediaStreamTrackProcessor" in window) capture.taken = captureFrames(capture);
  else captureByTimer(capture);
}

function stop() {
  if (!page.capture) return;
  sendMessage({ t: "stop" });
  endCapture();
  // The bot answers with `ended`; if it can't, show the end all the same.
  setTimeout(() => { if (page.state === "sharing") finish("ended", t("You stopped sharing.")); }, 1500);
}

function endCapture() {
  const capture = page.capture;
  if (!capture) return;
  page.capture = null;
  capture.stopped = true;
  clearTimeout(capture.resending);
  trouble("refused", "");
  // Ends the frames too: who takes them closes those that are left, and then ends the worker.
  for (const each of capture.stream.getTracks()) each.stop();
}

/* Wait until the capture has taken its last frame: one that is on its way when its track ends is lost unclosed. */
function lastFrame(capture) {
  capture.stopped = true;
  // A window that is minimised gives none.
  if (capture.track.muted) return undefined;
  return Promise.race([capture.taken, new Promise((go) => { setTimeout(go, LAST_FRAME_MS); })]);
}

/* Take frames as the browser produces them. Unlike a timer, this is not slowed down in a hidden tab. */
async function captureFrames(capture) {
  const processor = new MediaStreamTrackProcessor({ track: capture.track, maxBufferSize: 1 });
  const reader = processor.readable.getReader();
  for (;;) {
    const { value: frame, done } = await reader.read().catch(() => ({ done: true }));
    if (done) break;
    if (capture.stopped) {
      frame.close();
      break;
    }
    capture.worker.postMessage({ picture: frame }, [frame]);
  }
  capture.worker.postMessage({ stop: true });
}

/* For browsers without MediaStreamTrackProcessor: take pictures of an invisible video by a timer. */
function captureByTimer(capture) {
  const video = document.createElement("video");
  video.muted = true;
  video.playsInline = true;
  video.srcObject = capture.stream;
  video.play().catch(() => undefined);
  const every = setInterval(async () => {
    if (capture.stopped) {
      clearInterval(every);
      video.srcObject = null;
      capture.worker.postMessage({ stop: true });
    } else if (video.videoWidth) {
      const picture = await createImageBitmap(video).catch(() => null);
      if (picture && !capture.stopped) capture.worker.postMessage({ picture }, [picture]);
    }
  }, 1000 / page.limits.looked_per_s);
}

/* Start the worker that compares and encodes pictures. */
function newWorker() {
  const address = "/share/capture_worker.js";
  if (!window.trustedTypes) return new Worker(address);
  page.policy ??= trustedTypes.createPolicy("roomtone", { createScriptURL: () => address });
  return new Worker(page.policy.createScriptURL(address));
}

/* Send a picture from the worker. If it can't be sent now, the worker offers it or a later one again. */
function sendPicture(capture, jpeg) {
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
  capture.worker.postMessage({ sent });
}

/* Show the picture that was sent. */
async function preview(blob) {
  if (document.hidden) {
    page.pendingPreview = blob;
    return;
  }
  page.pendingPreview = null;
  const bitmap = await createImageBitmap(blob);
  const canvas = at("preview");
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();
  tick();
}

/* Tell that the bot did not take the last picture, and send the screen again: while it stands still, no other picture
   follows. */
function pictureRefused() {
  const capture = page.capture;
  if (!capture) return;
  trouble("refused", t("The bot could not take the last picture. This page sends it again."));
  if (capture.waits) return;
  clearTimeout(capture.resending);
  capture.waits = true;
  capture.resending = setTimeout(() => {
    capture.waits = false;
    capture.worker.postMessage({ again: true });
    capture.resending = setTimeout(() => {
      capture.refusals = 0;
      trouble("refused", "");
    }, SETTLED_MS);
  }, Math.min(RESEND_MS * 2 ** capture.refusals, LONGEST_RESEND_MS));
  capture.refusals += 1;
}

// -- start --------------------------------------------------------------------------------------------------------

function open() {
  if (!window.isSecureContext) return show("insecure");
  if (!navigator.mediaDevices || !navigator.mediaDevices.getDisplayMedia || !window.WebSocket) return show("phone");
  const hello = firstHello();
  if (!hello) {
    return finish("denied", t("There is no link in this address. Type /watch start in Discord and open the link that you get."));
  }
  return connect(hello);
}

at("choose").addEventListener("click", choose);
at("change").addEventListener("click", change);
at("stop").addEventListener("click", stop);
addEventListener("pagehide", () => {
  if (page.capture) {
    sendMessage({ t: "stop" });
    endCapture();
  }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && page.pendingPreview) preview(page.pendingPreview);
});
// A browser loads nothing for a link to the same page: only its fragment differs.
addEventListener("hashchange", () => location.reload());
setInterval(tick, 1000);
setInterval(() => {
  sendMessage({ t: "ping" });
  // The bot answers each ping. After three unanswered ones the connection is dead.
  if (page.socket && Date.now() - page.lastMessageAt > 3000 * page.limits.ping_s + 60_000) page.socket.close();
}, 1000 * page.limits.ping_s);
open();
