/* Looks at pictures of the screen, and makes those that differ from the one sent last ready to be sent.

   It runs beside the page, not in it: a browser slows down what a hidden page does, and the page is hidden as soon as
   the person goes back to their game.

   page -> {limits}, {picture}, {sent: true or false}, {again: true};  page <- {jpeg} or {skipped: true} */
"use strict";

const GRID = { width: 160, height: 90, tile: 5 };
// Under this no tile of the grid (0-255, mean) has changed to the eye; whether a change matters the bot decides.
const STILL = 0.8;

const lens = {
  limits: null,
  held: null, // the latest picture that nobody has looked at
  seen: null, // the grid of the picture that was sent last
  offered: null, // the grid of the picture that the page is to send now
  latest: null, // the picture that was made ready last, and its grid: a screen that stands still gives no other
  owed: false, // whether that is to be offered once more
  lookedAt: -Infinity,
  sentAt: -Infinity,
  busy: false,
  timer: null,
  grid: context(GRID.width, GRID.height, { willReadFrequently: true }),
  full: context(16, 16, { alpha: false }),
};
lens.grid.imageSmoothingQuality = "medium";

self.addEventListener("message", ({ data }) => {
  if (data.limits) lens.limits = data.limits;
  if (data.again) {
    lens.seen = null;
    lens.owed = true;
  }
  if (data.picture) {
    if (lens.held) lens.held.close();
    lens.held = data.picture;
  }
  if ("sent" in data) {
    lens.busy = false;
    if (data.sent) {
      lens.seen = lens.offered;
      lens.sentAt = performance.now();
    }
  }
  look();
});

function context(width, height, options) {
  return new OffscreenCanvas(width, height).getContext("2d", options);
}

/* Look at the picture that is held, or offer the latest once more, now or when its time has come. */
async function look() {
  if (lens.busy || !lens.limits || !(lens.held || (lens.owed && lens.latest))) return;
  const due = Math.max(lens.lookedAt + 1000 / lens.limits.looked_per_s, lens.sentAt + 1000 / lens.limits.sent_per_s);
  const wait = due - performance.now();
  clearTimeout(lens.timer);
  if (wait > 0) {
    lens.timer = setTimeout(look, wait);
    return;
  }
  const picture = lens.held;
  lens.held = null;
  lens.lookedAt = performance.now();
  lens.busy = true;
  let jpeg = null;
  try {
    const ready = picture ? await made(picture) : lens.latest;
    if (ready) {
      lens.latest = ready;
      lens.offered = ready.grid;
      lens.owed = false;
      jpeg = await ready.blob.arrayBuffer();
    }
  } catch (error) {
    // A picture that can't be read: the next one may be.
    jpeg = null;
  } finally {
    if (picture) picture.close();
  }
  if (jpeg) {
    self.postMessage({ jpeg }, [jpeg]);
    return;
  }
  lens.busy = false;
  if (lens.held) look();
}

/* A picture made ready to be sent, with its grid; null when it is the one that was sent last. */
async function made(picture) {
  const grid = grey(picture);
  const blob = changed(lens.seen, grid) ? await encoded(picture) : null;
  return blob && { blob, grid };
}

function grey(picture) {
  lens.grid.drawImage(picture, 0, 0, GRID.width, GRID.height);
  const { data } = lens.grid.getImageData(0, 0, GRID.width, GRID.height);
  const points = new Uint8Array(GRID.width * GRID.height);
  for (let i = 0; i < points.length; i += 1) {
    points[i] = (data[4 * i] * 77 + data[4 * i + 1] * 150 + data[4 * i + 2] * 29) >> 8;
  }
  return points;
}

function changed(before, now) {
  if (!before) return true;
  const limit = STILL * GRID.tile * GRID.tile;
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

/* A JPEG within the limits; null when there is none to be had. */
async function encoded(picture) {
  const width = picture.displayWidth || picture.width;
  const height = picture.displayHeight || picture.height;
  if (!width || !height) return null;
  const { max_side_px: side, max_bytes: bytes, quality } = lens.limits;
  for (const [shrink, worse] of [[1, 1], [1, 0.7], [0.75, 0.7], [0.5, 0.5]]) {
    const scale = Math.min(1, side / Math.max(width, height)) * shrink;
    const { canvas } = lens.full;
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    lens.full.imageSmoothingQuality = "high";
    lens.full.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: quality * worse });
    if (blob.size <= bytes) return blob;
  }
  return null;
}
