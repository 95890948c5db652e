/**
 * An independent voice client for the tests: @discordjs/voice in the local Discord, without discord.js.
 *
 * The client joins through the control API with its own adapter, plays a tone, and records what one member says as raw
 * PCM (16 bit, 48 kHz, stereo). It writes its events as JSON lines to stdout, and reads the commands
 * `announce`, `play`, `server` with an event of the main gateway, `status` and `stop` as lines from stdin.
 *
 *   node client.mjs --control http://127.0.0.1:PORT/control/TOKEN --user 2003 --listen 1001 --record heard.pcm [--hertz 660]
 */
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { parseArgs } from 'node:util';

import {
  AudioPlayerStatus,
  EndBehaviorType,
  NoSubscriberBehavior,
  StreamType,
  VoiceConnectionStatus,
  createAudioPlayer,
  createAudioResource,
  entersState,
  joinVoiceChannel,
} from '@discordjs/voice';
import OpusScript from 'opusscript';

const RATE_HZ = 48_000;
const CHANNELS = 2;
const PATIENCE_MS = 300_000;
const TONE_S = 1;

const { values: options } = parseArgs({
  options: {
    control: { type: 'string' },
    user: { type: 'string' },
    listen: { type: 'string' },
    record: { type: 'string' },
    hertz: { type: 'string', default: '660' },
  },
});

let gateway;

function tell(event, details = {}) {
  process.stdout.write(`${JSON.stringify({ event, ...details })}\n`);
}

async function control(path) {
  const response = await fetch(`${options.control}/members/${options.user}/${path}`, { method: 'POST' });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** The adapter that @discordjs/voice needs in place of discord.js: it sends op 4 and returns the two voice events. */
function adapter(methods) {
  gateway = methods;
  async function change(channelId) {
    if (channelId === null) {
      await control('leave');
      return;
    }
    const { state, server } = await control('join');
    methods.onVoiceStateUpdate(state);
    methods.onVoiceServerUpdate(server);
  }
  return {
    sendPayload({ d: { channel_id: channelId } }) {
      change(channelId).catch((error) => tell('control_failed', { message: error.message }));
      return true;
    },
    destroy() {},
  };
}

/** Return a sine tone of one second as raw PCM. */
function tone(hertz) {
  const samples = Buffer.alloc(RATE_HZ * TONE_S * CHANNELS * 2);
  for (let index = 0; index < RATE_HZ * TONE_S; index += 1) {
    const value = Math.round(8000 * Math.sin((2 * Math.PI * hertz * index) / RATE_HZ));
    for (let channel = 0; channel < CHANNELS; channel += 1) {
      samples.writeInt16LE(value, (index * CHANNELS + channel) * 2);
    }
  }
  return createAudioResource(Readable.from([samples], { objectMode: false }), { inputType: StreamType.Raw });
}

/** Decode what the member says into the file until `close` is called. Returns the counters and `close`. */
function record(connection) {
  const decoder = new OpusScript(RATE_HZ, CHANNELS, OpusScript.Application.VOIP);
  const file = createWriteStream(options.record);
  const counts = { packets: 0, failures: 0 };
  const stream = connection.receiver.subscribe(options.listen, { end: { behavior: EndBehaviorType.Manual } });
  stream.on('data', (packet) => {
    counts.packets += 1;
    try {
      file.write(Buffer.from(decoder.decode(packet)));
    } catch {
      counts.failures += 1;
    }
  });
  stream.on('error', () => {
    counts.failures += 1;
  });
  return {
    counts,
    async close() {
      stream.destroy();
      file.end();
      await finished(file);
      decoder.delete();
    },
  };
}

/** Wait for the group's keys, because audio played before would be sent unencrypted. */
async function encrypted(connection) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!connection.voicePrivacyCode) {
    if (Date.now() > deadline) throw new Error('No encryption keys came.');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const connection = joinVoiceChannel({
  guildId: '500',
  channelId: '600',
  selfDeaf: false,
  selfMute: false,
  adapterCreator: adapter,
});
connection.on('error', (error) => tell('error', { message: error.message }));
await entersState(connection, VoiceConnectionStatus.Ready, PATIENCE_MS);
await encrypted(connection);
const recording = record(connection);
tell('ready', { privacyCode: connection.voicePrivacyCode });
connection.on('stateChange', (before, after) => tell('state', { before: before.status, after: after.status }));

const player = createAudioPlayer({ behaviors: { noSubscriber: NoSubscriberBehavior.Pause } });
connection.subscribe(player);

for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'announce') {
    // Discord drops the sound of whom it does not know to speak, and the first packets may overtake the announcement.
    connection.setSpeaking(true);
  } else if (line === 'play') {
    player.play(tone(Number(options.hertz)));
    await entersState(player, AudioPlayerStatus.Playing, PATIENCE_MS);
    await entersState(player, AudioPlayerStatus.Idle, PATIENCE_MS);
    tell('played');
  } else if (line.startsWith('server ')) {
    gateway.onVoiceServerUpdate(JSON.parse(line.slice('server '.length)));
  } else if (line === 'status') {
    tell('status', { ...recording.counts, connection: connection.state.status });
  } else if (line === 'stop') {
    break;
  }
}
await recording.close();
player.stop(true);
connection.destroy();
tell('stopped', recording.counts);
// The library's timers would keep the process alive.
setTimeout(() => process.exit(0), 200);
