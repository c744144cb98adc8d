// A camera that walks around a shape: drag, wheel, pinch, keys. It glides to where it is told.

const LIMIT = 1.55; // radians; a little less than straight up

export class Orbit {
  constructor(distance) {
    this.home = { yaw: 0.44, pitch: 0.12, distance, x: 0, y: 0.04, z: 0 }; // a little low: names stand above
    this.now = { ...this.home };
    this.goal = { ...this.home };
  }

  /** Move towards the goal; true while there is still some way to go. */
  step(seconds) {
    const share = 1 - Math.exp(-seconds * 16);
    let moving = false;
    for (const key of Object.keys(this.goal)) {
      const rest = this.goal[key] - this.now[key];
      if (Math.abs(rest) > 1e-4) {
        this.now[key] += rest * share;
        moving = true;
      } else {
        this.now[key] = this.goal[key];
      }
    }
    return moving;
  }

  turn(dx, dy) {
    this.goal.yaw -= dx;
    this.goal.pitch = Math.min(LIMIT, Math.max(-LIMIT, this.goal.pitch + dy));
  }

  zoom(factor) {
    this.goal.distance = Math.min(4 * this.home.distance, Math.max(0.25, this.goal.distance * factor));
  }

  /** Shift the centre in the plane of the picture, in display units. */
  pan(dx, dy) {
    const { yaw, pitch } = this.goal;
    const right = [Math.cos(yaw), 0, -Math.sin(yaw)];
    const up = [-Math.sin(pitch) * Math.sin(yaw), Math.cos(pitch), -Math.sin(pitch) * Math.cos(yaw)];
    this.goal.x -= right[0] * dx - up[0] * dy;
    this.goal.y -= right[1] * dx - up[1] * dy;
    this.goal.z -= right[2] * dx - up[2] * dy;
  }

  lookAt(x, y, z) {
    Object.assign(this.goal, { x, y, z });
  }

  reset() {
    // The short way round.
    this.now.yaw = ((((this.now.yaw - this.home.yaw + Math.PI) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI)) - Math.PI + this.home.yaw;
    this.goal = { ...this.home };
  }

  jump() {
    this.now = { ...this.goal };
  }

  copyFrom(other) {
    this.home = { ...other.home };
    this.now = { ...other.now };
    this.goal = { ...other.goal };
  }

  apply(camera) {
    const { yaw, pitch, distance, x, y, z } = this.now;
    camera.position.set(
      x + distance * Math.cos(pitch) * Math.sin(yaw),
      y + distance * Math.sin(pitch),
      z + distance * Math.cos(pitch) * Math.cos(yaw),
    );
    camera.lookAt(x, y, z);
    camera.near = Math.max(0.01, distance - 3.5);
    camera.far = distance + 6;
  }
}

/**
 * Pointer gestures on an element.
 *
 * @param {HTMLElement} element
 * @param {object} on turn(at, dx, dy), pan(at, dx, dy), zoom(at, factor), hover(at), leave(), tap(at),
 *   focus(at); `at` is {x, y} in CSS pixels of the element, movements are in CSS pixels
 */
export function listen(element, on) {
  const fingers = new Map();
  let travelled = 0;
  let pinch = 0;
  // In a notebook the wheel scrolls the page until somebody has touched the view.
  let awake = window.self === window.top;

  const place = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  element.addEventListener("pointerdown", (event) => {
    awake = true;
    element.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { ...place(event), button: event.button, shift: event.shiftKey });
    travelled = fingers.size > 1 ? 1e3 : 0;
    if (fingers.size === 2) pinch = spread();
  });
  element.addEventListener("pointermove", (event) => {
    const at = place(event);
    const finger = fingers.get(event.pointerId);
    if (!finger) {
      if (event.pointerType !== "touch") on.hover(at);
      return;
    }
    const [dx, dy] = [at.x - finger.x, at.y - finger.y];
    travelled += Math.abs(dx) + Math.abs(dy);
    Object.assign(finger, at);
    if (fingers.size === 2) {
      const next = spread();
      on.zoom(next, pinch.distance / Math.max(next.distance, 1));
      on.pan(next, next.x - pinch.x, next.y - pinch.y);
      pinch = next;
    } else if (fingers.size === 1 && travelled > 4) {
      if (finger.button === 2 || finger.button === 1 || finger.shift) on.pan(at, dx, dy);
      else on.turn(at, dx, dy);
    }
  });
  const lift = (event) => {
    const finger = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    if (finger && event.type === "pointerup" && travelled <= 4 && finger.button === 0) on.tap(place(event));
  };
  element.addEventListener("pointerup", lift);
  element.addEventListener("pointercancel", lift);
  element.addEventListener("pointerleave", () => fingers.size || on.leave());
  element.addEventListener("dblclick", (event) => on.focus(place(event)));
  element.addEventListener("contextmenu", (event) => event.preventDefault());
  element.addEventListener(
    "wheel",
    (event) => {
      if (!awake && !event.ctrlKey) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      on.zoom(place(event), Math.exp(Math.max(-80, Math.min(80, event.deltaY * lines)) * 0.0022));
    },
    { passive: false },
  );
}
