/* Sends the microphone to the local Discord as a member's voice, plays what that member hears, and shows what the bot
   hears, decides and remembers. `rehearsal/roomtone/microphone.py` has the messages. */
const RATE_HZ = 48_000;
// What is played waits so long, so that sound that comes a little late leaves no gap; a page that was stalled drops the rest.
const LEAD_S = 0.08;
const MOST_WAITING_S = 1;
// Half a second of sound that the connection has not taken: the newest frames go.
const MOST_UNSENT_BYTES = 48_000;
const MOST_LINES = 200;

const REFUSED = {
  NotAllowedError: "This page may not use your microphone: allow it beside the address above, and press Talk again.",
  NotFoundError: "Your browser finds no microphone: connect one, and press Talk again.",
  NotReadableError: "Another program uses your microphone: close that program, and press Talk again.",
};
const REASONS = {
  wake_name: "you said its name",
  alone_together: "you two are alone",
  engaged: "you are talking with it",
  room_question: "it was a question to everybody",
  not_addressed: "that was not for it",
  addressed_to_other: "that was for somebody else",
  wants_no_answer: "that wants no answer",
  silenced: "somebody told it to be quiet",
  nothing_said: "there were no words in it",
};
const PARTS = {
  turn: ["turn", "turns"], recall: ["quote from earlier", "quotes from earlier"], summary: ["summary", "summaries"],
  note: ["screen note", "screen notes"], participants: ["note about people", "notes about people"],
};

const at = (id) => document.getElementById(id);
new ResizeObserver(() => { at("log").scrollTop = at("log").scrollHeight; }).observe(at("lines"));
let call = null;
let names = {};
let bot = "Roomtone";
let unfinished = null;

function tell(text, bad) {
  at("state").textContent = text;
  at("state").toggleAttribute("data-bad", Boolean(bad));
}

function line(kind, who, text) {
  const item = document.createElement("li");
  item.className = kind;
  if (who) {
    const name = document.createElement("b");
    name.textContent = who;
    item.append(name, " ");
  }
  item.append(text);
  const list = at("lines");
  list.append(item);
  while (list.childElementCount > MOST_LINES) list.firstElementChild.remove();
  at("nothing").hidden = true;
  return item;
}

function finish() {
  if (unfinished) unfinished.remove();
  unfinished = null;
}

const SHOW = {
  Welcome(told) {
    ({ names, bot } = told);
    document.body.dataset.state = "talking";
    tell(`You are ${told.you} in the channel. Speak: ${bot} hears you.`);
  },
  Over: ({ why }) => hangUp(why),
  InterimTranscribed(told) {
    finish();
    unfinished = line("unfinished", names[told.speaker_id], `${told.text} …`);
  },
  UtteranceTranscribed(told) {
    finish();
    line("person", names[told.speaker_id], told.text);
  },
  SpeechDropped(told) {
    finish();
    line("why", "", `Not taken for words: ${told.reason.replaceAll("_", " ")}.`);
  },
  TurnDecided(told) {
    const why = REASONS[told.reason] || told.reason.replaceAll("_", " ");
    line("why", "", `${told.answers ? "It answers" : "It says nothing"}: ${why}.`);
  },
  ReplySpoken: (told) => line("bot", bot, told.interrupted ? `${told.text} (interrupted)` : told.text),
  TurnRecorded(told) {
    const turns = told.seq + 1;
    at("turns").textContent = `${turns} ${turns === 1 ? "turn" : "turns"}, word for word.`;
  },
  ContextBuilt(told) {
    const parts = Object.entries(PARTS).filter(([kind]) => told.parts[kind])
      .map(([kind, [one, many]]) => `${told.parts[kind]} ${told.parts[kind] === 1 ? one : many}`);
    at("sent").hidden = false;
    at("sent").textContent = `For its last answer it had: ${["the question", ...parts].join(", ")}.`;
  },
  CompactionLanded(told) {
    at("summary").hidden = false;
    at("summary").textContent = `Summary of the first ${told.new_cursor} turns:\n${told.summary}`;
  },
  LoggedProblem: (told) => line("why", "", `Problem: ${told.event.replaceAll("_", " ")}. ${told.detail}`),
};

/* Play 20 ms of somebody after what is already waiting of them. */
function play(speakers, data) {
  const ssrc = new DataView(data).getUint32(0, true);
  const samples = new Int16Array(data, 4);
  const { context, due } = speakers;
  const next = due.get(ssrc) || 0;
  const begin = next < context.currentTime ? context.currentTime + LEAD_S : next;
  if (begin > context.currentTime + MOST_WAITING_S) return;
  const buffer = context.createBuffer(1, samples.length, RATE_HZ);
  buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32_768), 0);
  const source = context.createBufferSource();
  source.buffer = buffer;
  source.connect(context.destination);
  source.start(begin);
  due.set(ssrc, begin + buffer.duration);
  document.body.dataset.played = String(Number(document.body.dataset.played || 0) + 1);
}

function send(socket, frame) {
  const samples = new Int16Array(frame);
  const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  at("level").value = call.muted ? 0 : Math.sqrt(loudest / 32_768);
  if (!call.muted && socket.readyState === WebSocket.OPEN && socket.bufferedAmount < MOST_UNSENT_BYTES) socket.send(frame);
}

async function begin() {
  const mine = { muted: false, closing: [] };
  call = mine;
  document.body.dataset.state = "asking";
  at("talk").textContent = "Stop";
  tell("Your browser asks whether this page may use your microphone.");
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } });
    mine.closing.push(() => stream.getTracks().forEach((track) => track.stop()));
    if (call !== mine) return mine.closing.forEach((close) => close());
    const speakers = { context: new AudioContext({ sampleRate: RATE_HZ }), due: new Map() };
    const listening = new AudioContext();
    mine.closing.push(() => speakers.context.close(), () => listening.close());
    await listening.audioWorklet.addModule("worklet.js");
    if (call !== mine) return undefined;
    tell("Coming into the channel…");
    const socket = new WebSocket(new URL("socket", location.href.replace(/^http/, "ws")));
    mine.closing.push(() => socket.close());
    socket.binaryType = "arraybuffer";
    socket.addEventListener("close", () => { if (call === mine) hangUp("The connection ended: is roomtone rehearse --serve still running? Press Talk again."); });
    socket.addEventListener("message", ({ data }) => {
      if (call !== mine) return;
      if (typeof data !== "string") return play(speakers, data);
      const told = JSON.parse(data);
      if (told.event in SHOW) SHOW[told.event](told);
    });
    const frames = new AudioWorkletNode(listening, "frames", { numberOfOutputs: 0 });
    frames.port.addEventListener("message", ({ data }) => { if (call === mine) send(socket, data); });
    frames.port.start();
    listening.createMediaStreamSource(stream).connect(frames);
    at("mute").hidden = false;
  } catch (failure) {
    if (call === mine) hangUp(REFUSED[failure.name] || `Your browser could not open the microphone (${failure.message}): reload this page, and press Talk again.`);
  }
  return undefined;
}

/* End the call. `why`: what went wrong, if something did. */
function hangUp(why) {
  const { closing } = call;
  call = null;
  closing.forEach((close) => close());
  finish();
  document.body.dataset.state = "silent";
  at("talk").textContent = "Talk";
  at("mute").hidden = true;
  at("mute").textContent = "Mute";
  at("mute").setAttribute("aria-pressed", "false");
  at("level").value = 0;
  tell(why || "You have left the channel. Press Talk to come back.", why);
}

at("talk").addEventListener("click", () => (call ? hangUp("") : begin()));
at("mute").addEventListener("click", () => {
  call.muted = !call.muted;
  at("mute").textContent = call.muted ? "Unmute" : "Mute";
  at("mute").setAttribute("aria-pressed", String(call.muted));
});
