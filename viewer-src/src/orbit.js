// A camera that walks around a shape. It glides to where it is told.

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
