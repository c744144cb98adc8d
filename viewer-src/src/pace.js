// Fewer pixels and points while a slow machine moves the picture, all of them when it rests.

const SLOW = 40; // milliseconds of a frame at which the picture gets coarser
const REST = 220; // milliseconds of stillness after which it is drawn in full
const LEVELS = [{ density: 1, share: 1 }, { density: 0.6, share: 0.35 }, { density: 0.45, share: 0.12 }];

export class Pace {
  /** @param {(level: {density: number, share: number}) => void} apply */
  constructor(apply) {
    this.apply = apply;
    this.level = 0;
    this.frames = [];
  }

  /** Note how long a moving frame took, in milliseconds. */
  note(elapsed) {
    this.frames.push(elapsed);
    const mean = this.frames.reduce((a, b) => a + b, 0) / this.frames.length;
    // Very slow frames are not waited for.
    const enough = this.frames.length > 4 || mean * this.frames.length > 250;
    if (mean > SLOW && enough && this.level < LEVELS.length - 1) this._set(this.level + 1);
    else if (this.frames.length > 4) this.frames.shift();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this._set(0), REST);
  }

  _set(level) {
    this.frames = [];
    if (level === this.level) return;
    this.level = level;
    this.apply(LEVELS[level]);
  }
}
