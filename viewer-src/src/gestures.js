// What fingers and mouse do on the stage.

/** Let the pointer turn, move, zoom and choose. */
export function attachGestures(stage) {
  const orbitAt = (at) => {
    const view = stage.viewAt(at) ?? stage.shown[0];
    return stage.settings.linked ? stage.views.source.orbit : view.orbit;
  };
  const unit = (at) => {
    const view = stage.viewAt(at) ?? stage.shown[0];
    const height = 2 * view.orbit.goal.distance * Math.tan((view.camera.fov * Math.PI) / 360);
    return height / view.rect.height;
  };
  // Gestures stay with the view in which they began.
  let grabbed = null;
  stage.overlay.addEventListener("pointerdown", (event) => {
    const box = stage.overlay.getBoundingClientRect();
    grabbed = { x: event.clientX - box.left, y: event.clientY - box.top };
  });
  listen(stage.overlay, {
    turn: (at, dx, dy) => {
      orbitAt(grabbed ?? at).turn(dx * 0.0075, dy * 0.0075);
      stage.invalidate();
    },
    pan: (at, dx, dy) => {
      const scale = unit(grabbed ?? at);
      orbitAt(grabbed ?? at).pan(dx * scale, dy * scale);
      stage.invalidate();
    },
    zoom: (at, factor) => {
      orbitAt(at).zoom(factor);
      stage.invalidate();
    },
    hover: (at) => {
      stage.hoverAt = at;
      stage.wake();
    },
    leave: () => {
      stage.hoverAt = null;
      stage.choose(null, false);
      stage.wake();
    },
    tap: (at) => {
      const point = stage.pick(at);
      if (stage.onTap?.(point)) return;
      if (point) stage.select(point.side, point.index);
      else stage.clear();
    },
    focus: (at) => {
      const point = stage.pick(at);
      if (!point) return stage.reset();
      const view = stage.views[point.side];
      const p = view.positionOf(point.index, view.uniforms.morph.value);
      const orbit = orbitAt(at);
      orbit.lookAt(p.x, p.y, p.z);
      orbit.zoom(0.6);
      stage.invalidate();
    },
  });
}

/**
 * Pointer gestures on an element.
 *
 * @param {HTMLElement} element
 * @param {object} on turn(at, dx, dy), pan(at, dx, dy), zoom(at, factor), hover(at), leave(), tap(at),
 *   focus(at); `at` is {x, y} in CSS pixels of the element, movements are in CSS pixels
 */
function listen(element, on) {
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
