/* Worker that compares pictures of the screen and encodes those that differ from the one sent last.

   It is a worker because browsers slow down hidden pages, and the page is hidden as soon as the person goes back to
   their game.

   page -> {limits}, {picture}, {sent: true or false}, {again: true}, {stop: true};  page <- {jpeg}. After {stop} nothing
   comes from the page, and the worker ends once its pictures are closed. */
"use strict";

const GRID = { width: 160, height: 90, tile: 5 };
// Mean difference (0-255) below which a tile of the grid counts as unchanged. The bot decides whether a change matters.
const UNCHANGED = 0.8;

const state = {
  limits: null,
  next: null, // the latest picture, not yet compared
  sentGrid: null, // the grid of the picture sent last
  offeredGrid: null, // the grid of the picture that the page is about to send
  encoded: null, // the JPEG encoded last, and its grid; an unchanged screen yields no other
  resend: false, // whether to offer that JPEG once more
  comparedAt: -Infinity,
  sentAt: -Infinity,
  busy: false,
  stopped: false,
  looking: false, // whether a picture is being compared or encoded
  timer: null,
  grid: context(GRID.width, GRID.height, { willReadFrequently: true }),
  full: context(16, 16, { alpha: false }),
};
state.grid.imageSmoothingQuality = "medium";

self.addEventListener("message", ({ data }) => {
  if (data.stop) {
    stop();
    return;
  }
  if (data.limits) state.limits = data.limits;
  if (data.again) {
    state.sentGrid = null;
    state.resend = true;
  }
  if (data.picture) {
    if (state.next) state.next.close();
    state.next = data.picture;
  }
  if ("sent" in data) {
    state.busy = false;
    if (data.sent) {
      state.sentGrid = state.offeredGrid;
      state.sentAt = performance.now();
    } else {
      // A still screen may yield no other picture.
      state.resend = true;
    }
  }
  process();
});

function stop() {
  state.stopped = true;
  clearTimeout(state.timer);
  if (state.next) state.next.close();
  state.next = null;
  // A picture that is being looked at is closed first.
  if (!state.looking) self.close();
}

function context(width, height, options) {
  return new OffscreenCanvas(width, height).getContext("2d", options);
}

/* Compare the next picture, or offer the last JPEG once more, now or when the rate limit allows it. */
async function process() {
  if (state.busy || !state.limits || !(state.next || (state.resend && state.encoded))) return;
  const due = Math.max(state.comparedAt + 1000 / state.limits.looked_per_s, state.sentAt + 1000 / state.limits.sent_per_s);
  const wait = due - performance.now();
  clearTimeout(state.timer);
  if (wait > 0) {
    state.timer = setTimeout(process, wait);
    return;
  }
  const picture = state.next;
  state.next = null;
  // A newer picture replaces the one to offer once more, also if the screen is again as it was sent.
  state.resend = false;
  state.comparedAt = performance.now();
  state.busy = state.looking = true;
  let jpeg = null;
  try {
    const ready = picture ? await prepare(picture) : state.encoded;
    if (ready) {
      state.encoded = ready;
      state.offeredGrid = ready.grid;
      jpeg = await ready.blob.arrayBuffer();
    }
  } catch (error) {
    // This picture can't be read; the next one may be.
    jpeg = null;
  } finally {
    if (picture) picture.close();
    state.looking = false;
  }
  if (state.stopped) {
    self.close();
    return;
  }
  if (jpeg) {
    self.postMessage({ jpeg }, [jpeg]);
    return;
  }
  state.busy = false;
  if (state.next) process();
}

/* Return the JPEG of a picture and its grid; null if it does not differ from the one sent last. */
async function prepare(picture) {
  const grid = toGrid(picture);
  const blob = changed(state.sentGrid, grid) ? await encode(picture) : null;
  return blob && { blob, grid };
}

function toGrid(picture) {
  state.grid.drawImage(picture, 0, 0, GRID.width, GRID.height);
  const { data } = state.grid.getImageData(0, 0, GRID.width, GRID.height);
  const points = new Uint8Array(GRID.width * GRID.height);
  for (let i = 0; i < points.length; i += 1) {
    points[i] = (data[4 * i] * 77 + data[4 * i + 1] * 150 + data[4 * i + 2] * 29) >> 8;
  }
  return points;
}

function changed(before, now) {
  if (!before) return true;
  const limit = UNCHANGED * GRID.tile * GRID.tile;
  for (let top = 0; top < GRID.height; top += GRID.tile) {
    for (let left = 0; left < GRID.width; left += GRID.tile) {
      let sum = 0;
      for (let y = top; y < top + GRID.tile; y += 1) {
        for (let x = left; x < left + GRID.tile; x += 1) {
          sum += Math.abs(now[y * GRID.width + x] - before[y * GRID.width + x]);
        }
      }
      if (sum >= limit) return true;
    }
  }
  return false;
}

/* Return a JPEG within the limits, or null. */
async function encode(picture) {
  const width = picture.displayWidth || picture.width;
  const height = picture.displayHeight || picture.height;
  if (!width || !height) return null;
  const { max_side_px: side, max_bytes: bytes, quality } = state.limits;
  for (const [shrink, worsen] of [[1, 1], [1, 0.7], [0.75, 0.7], [0.5, 0.5]]) {
    const scale = Math.min(1, side / Math.max(width, height)) * shrink;
    const { canvas } = state.full;
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    state.full.imageSmoothingQuality = "high";
    state.full.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: quality * worsen });
    if (blob.size <= bytes) return blob;
  }
  return null;
}
