// The soft shadow on the ground: the shape seen from below, blurred by its own coarser levels.

import {
  Color, DoubleSide, GLSL3, LinearFilter, LinearMipmapLinearFilter, Mesh, NoBlending, OrthographicCamera, PlaneGeometry,
  RawShaderMaterial, Vector3, WebGLRenderTarget,
} from "three";
import { SHADERS } from "./shaders.js";

const PIXELS = 256;
const MARGIN = 1.45; // room for the blur around the shape
const HEIGHT = 2.5; // display units above the ground that the picture holds

export class Shadow {
  /** @param {import("./view.js").View} view */
  constructor(view) {
    this.view = view;
    this.target = new WebGLRenderTarget(PIXELS, PIXELS, {
      generateMipmaps: true, minFilter: LinearMipmapLinearFilter, magFilter: LinearFilter,
    });
    // From below, so that what is nearest to the ground is what is seen.
    this.camera = new OrthographicCamera(-1, 1, 1, -1, 0, HEIGHT);
    this.camera.up.set(0, 0, 1);
    this.uniforms = {
      ink: { value: new Color(0, 0, 0) }, strength: { value: 0.2 }, below: { value: this.target.texture }, extent: { value: 1 },
    };
    this.material = view.makeMaterial({ SHADOW: 1 }, { blending: NoBlending });
    this.ground = new Mesh(
      new PlaneGeometry(2, 2).rotateX(-Math.PI / 2),
      new RawShaderMaterial({
        glslVersion: GLSL3,
        vertexShader: SHADERS.GROUND_VERTEX,
        fragmentShader: SHADERS.GROUND_FRAGMENT,
        uniforms: this.uniforms,
        transparent: true,
        premultipliedAlpha: true,
        depthWrite: false,
        side: DoubleSide,
      }),
    );
  }

  /** Draw it anew if the shape has moved since. */
  update(renderer) {
    const { view, camera, ground } = this;
    const morph = view.uniforms.morph.value;
    if (this.drawn === view.placed && this.drawnMorph === morph) return;
    [this.drawn, this.drawnMorph] = [view.placed, morph];
    const mix = (key) => view.extent[key] + morph * (view.endExtent[key] - view.extent[key]);
    const half = MARGIN * Math.max(view.extent.radius, view.endExtent.radius);
    const low = mix("low");
    Object.assign(camera, { left: -half, right: half, top: half, bottom: -half });
    camera.position.set(0, low - 0.01, 0);
    camera.lookAt(new Vector3(0, low + 1, 0));
    camera.updateProjectionMatrix();
    ground.position.y = low - 0.004;
    ground.scale.set(half, 1, half);
    ground.visible = false;
    const wire = view.wire?.visible;
    if (view.wire) view.wire.visible = false;
    view.object.material = this.material;
    renderer.setRenderTarget(this.target);
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.render(view.scene, camera);
    renderer.setRenderTarget(null);
    view.object.material = view.material;
    if (view.wire) view.wire.visible = wire;
    ground.visible = true;
  }
}
