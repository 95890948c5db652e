/**
 * @discordjs/voice in the local Discord, as the other one who receives the crowd. It subscribes to every speaker and
 * decodes what comes with @evan/opus: libopus as native code, built beforehand. opusscript, which the library's guide
 * names for a bot without a compiler, cannot be used: its memory is too small for about twenty decoders, so that it fails
 * ("memory access out of bounds") and, once it has grown, all earlier decoders do ("detached ArrayBuffer").
 *
 * Reads requests as JSON lines (`join`, `subscribe`, `begin`, `warmed_up`, `end`, `counters`) and answers each with one
 * JSON line.
 */
import { createInterface } from 'node:readline';
import { monitorEventLoopDelay } from 'node:perf_hooks';

import { EndBehaviorType, VoiceConnectionStatus, entersState, joinVoiceChannel } from '@discordjs/voice';
import { Decoder } from '@evan/opus';

const RATE_HZ = 48_000;
const CHANNELS = 2;
const PATIENCE_MS = 60_000;
const lag = monitorEventLoopDelay({ resolution: 10 });
const counts = { received: 0, decoded: 0, failures: 0 };
let connection;
let begun;

/** The adapter that the library needs in place of discord.js. */
function adapter(control, user) {
  return (methods) => ({
    sendPayload({ d: { channel_id: channelId } }) {
      const path = channelId === null ? 'leave' : 'join';
      fetch(`${control}/members/${user}/${path}`, { method: 'POST' })
        .then((response) => response.json())
        .then(({ state, server }) => {
          if (!server) return;
          methods.onVoiceStateUpdate(state);
          methods.onVoiceServerUpdate(server);
        })
        .catch(() => {});
      return true;
    },
    destroy() {},
  });
}

async function join({ control, user, guild, channel }) {
  connection = joinVoiceChannel({
    guildId: String(guild),
    channelId: String(channel),
    selfDeaf: false,
    selfMute: false,
    adapterCreator: adapter(control, user),
  });
  connection.on('error', () => {});
  await entersState(connection, VoiceConnectionStatus.Ready, PATIENCE_MS);
  const deadline = Date.now() + PATIENCE_MS;
  while (!connection.voicePrivacyCode) {
    if (Date.now() > deadline) throw new Error('No encryption keys came.');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {};
}

/** Subscribe to every speaker. `decode`: decode their packets too. */
function subscribe({ speakers, decode }) {
  for (const user of speakers) {
    const stream = connection.receiver.subscribe(String(user), { end: { behavior: EndBehaviorType.Manual } });
    const decoder = decode ? new Decoder({ sample_rate: RATE_HZ, channels: CHANNELS }) : null;
    stream.on('data', (packet) => {
      counts.received += 1;
      if (decoder === null) return;
      try {
        decoder.decode(packet);
        counts.decoded += 1;
      } catch {
        counts.failures += 1;
      }
    });
    stream.on('error', () => {
      counts.failures += 1;
    });
  }
  return {};
}

function begin() {
  Object.assign(counts, { received: 0, decoded: 0, failures: 0 });
  return warmed_up();
}

/** The cost counts from here on, and no longer from `begin`, as the packets do. */
function warmed_up() {
  lag.enable();
  lag.reset();
  begun = { at: performance.now(), cpu: process.cpuUsage() };
  return {};
}

function end() {
  const used = process.cpuUsage(begun.cpu);
  return {
    wall_s: (performance.now() - begun.at) / 1000,
    cpu_s: (used.user + used.system) / 1e6,
    loop_lag: { p50_ms: lag.percentile(50) / 1e6 - 10, p99_ms: lag.percentile(99) / 1e6 - 10, max_ms: lag.max / 1e6 - 10 },
  };
}

function counters() {
  return { counters: { ...counts } };
}

const requests = { join, subscribe, begin, warmed_up, end, counters };
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.op === 'stop') break;
  let answer;
  try {
    answer = await requests[request.op](request);
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
connection?.destroy();
// The library's timers would keep the process alive.
setTimeout(() => process.exit(0), 200);
