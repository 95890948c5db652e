/* Makes 20 ms of 48 kHz sound (960 samples of 16 bits) at a time of what the microphone gives at its own rate. */
const RATE_HZ = 48_000;
const FRAME_SAMPLES = 960;

class Frames extends AudioWorkletProcessor {
  constructor() {
    super();
    this.frame = new Int16Array(FRAME_SAMPLES);
    this.filled = 0;
    // Where the next sample is in the block, between the sample before it and the one at it.
    this.at = 0;
    this.last = 0;
  }

  process([[block]]) {
    if (!block) return true;
    for (; this.at < block.length; this.at += sampleRate / RATE_HZ) {
      const index = Math.floor(this.at);
      const before = index ? block[index - 1] : this.last;
      this.add(before + (block[index] - before) * (this.at - index));
    }
    this.at -= block.length;
    this.last = block[block.length - 1];
    return true;
  }

  add(sample) {
    this.frame[this.filled] = 32_767 * Math.max(-1, Math.min(1, sample));
    this.filled += 1;
    if (this.filled < FRAME_SAMPLES) return;
    this.port.postMessage(this.frame.slice().buffer);
    this.filled = 0;
  }
}

registerProcessor("frames", Frames);
