// The local app: two files in, a queue, the viewer, downloads.

import { download, el, icon, number } from "./dom.js";
import { cycleTheme, onTheme, themeIcon } from "./theme.js";
import { Pairs } from "./pairs.js";
import { openScene } from "./unpack.js";
import { Viewer } from "./viewer.js";

const STAGES = {
  read: "Read the files",
  orient: "Find which way is up",
  embed: "Embed both shapes",
  match: "Match",
  refine: "Refine the map",
  carry: "Extend it to all points",
  confidence: "Estimate the confidence",
  write: "Write the results",
  wrap: "Wrap the source onto the target",
};
const STATES = { queued: "waiting", running: "running", done: "done", failed: "failed", cancelled: "cancelled" };

export async function startApp(root) {
  const app = new App(root, takeToken());
  await app.start();
  window.ltenet = { app, ready: true };
}

/** The token comes behind the # of the address, where no server sees it, and leaves it at once. */
function takeToken() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("ltenet-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("ltenet-token") ?? "";
}

class App {
  constructor(root, token) {
    this.root = root;
    this.token = token;
    this.files = { source: null, target: null };
    this.orders = new Map(); // by job: its files and options, for matching again
    this.watched = null;
    onTheme(() => this.themeButton?.replaceChildren(icon(themeIcon())));
  }

  async start() {
    const answer = await this.ask("about");
    if (answer.status === 401) return this.refuse();
    this.about = await answer.json();
    this.home();
    this.catchStrayDrops();
    this.poll();
  }

  ask(path, options = {}) {
    return fetch(`/api/${path}`, { ...options, headers: { "X-Ltenet-Token": this.token, ...options.headers } });
  }

  refuse() {
    this.root.replaceChildren(
      el("div.failure", { role: "alert" },
        el("h1", { text: "This address has no token" }),
        el("p", { text: "Open the whole address that ltenet app printed, including the part after the #." })),
    );
  }

  home() {
    this.viewer?.destroy();
    this.viewer = null;
    document.title = "ltenet";
    this.message = el("p.message", { role: "alert" });
    this.model = el("select", { "aria-label": "Model", id: "model" },
      ...this.about.models.map((name) => el("option", { value: name, text: name === "auto" ? "Choose for me" : name })));
    this.effort = el("select", { "aria-label": "Effort", id: "effort" },
      ...this.about.efforts.map((name) => el("option", { value: name, text: name })));
    this.go = el("button.primary", { type: "button", text: "Match", onclick: () => this.submit() });
    this.list = el("section.jobs", { "aria-label": "Pairs", "aria-live": "polite" });
    this.themeButton = el("button.icon-button", { type: "button", "aria-label": "Light or dark", onclick: cycleTheme }, icon(themeIcon()));
    this.drops = { source: this.drop("source"), target: this.drop("target") };
    this.root.replaceChildren(
      el("div.home", {},
        el("header.head", {}, el("span.brand", { text: "ltenet" }), el("h1", {}), el("nav", {}, this.themeButton)),
        el("main", {},
          el("h2", { text: "Which point of this shape is which point of that one?" }),
          el("p.note", { text: "Meshes, scans or clouds. The files stay on this machine." }),
          el("div.drops", {}, this.drops.source, el("span.arrow", { text: "→" }), this.drops.target),
          el("div.order", {}, el("label", { for: "model", text: "Model" }), this.model, el("label", { for: "effort", text: "Effort" }), this.effort, this.go),
          this.message,
          this.list)),
    );
    this.refresh();
    this.renderJobs();
  }

  drop(side) {
    const input = el("input", { type: "file", id: `file-${side}`, accept: this.about.suffixes.join(","), onchange: () => this.choose(side, input.files[0]) });
    const zone = el("label.drop", { for: `file-${side}`, "data-side": side },
      icon("up"), el("small", { text: side }), el("b"), el("span"), input);
    for (const kind of ["dragover", "dragleave", "drop"]) {
      zone.addEventListener(kind, (event) => {
        event.preventDefault();
        zone.classList.toggle("over", kind === "dragover");
        if (kind === "drop") {
          event.stopPropagation();
          this.take(event.dataTransfer.files, side);
        }
      });
    }
    return zone;
  }

  /** Files that were dropped: two at once fill both places. */
  take([first, second], side) {
    if (!first) return;
    this.choose(side, first);
    if (second) this.choose(side === "source" ? "target" : "source", second);
  }

  /** Beside the two places the browser would leave the page and open the file. */
  catchStrayDrops() {
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!this.viewer && this.files) this.take(event.dataTransfer.files, this.files.source ? "target" : "source");
    });
  }

  choose(side, file) {
    if (!file) return;
    const suffix = file.name.slice(file.name.lastIndexOf(".")).toLowerCase();
    this.message.textContent = "";
    if (!this.about.suffixes.includes(suffix)) {
      this.message.textContent = `${file.name}: one of ${this.about.suffixes.join(", ")} is needed.`;
      return;
    }
    if (file.size > this.about.bytes) {
      this.message.textContent = `${file.name} is larger than ${number(this.about.bytes / 2 ** 20)} MB.`;
      return;
    }
    this.files[side] = file;
    this.refresh();
  }

  refresh() {
    for (const [side, zone] of Object.entries(this.drops)) {
      const file = this.files[side];
      zone.classList.toggle("filled", file !== null);
      zone.querySelector("b").textContent = file ? file.name : "Drop a file";
      zone.querySelector("span").textContent = file ? `${number(file.size / 1024, 0)} kB` : "or click to choose one";
    }
    this.go.disabled = !(this.files.source && this.files.target);
  }

  async submit() {
    this.go.disabled = true;
    this.message.textContent = "";
    try {
      await this.order({ files: { ...this.files }, model: this.model.value, effort: this.effort.value, pairs: [] });
      this.renderJobs();
    } catch (error) {
      this.message.textContent = error.message;
    }
    this.refresh();
  }

  /** Send two files and what to do with them; the server keeps none of them, so the page does. */
  async order({ files, model, effort, pairs }) {
    const ids = {};
    for (const side of ["source", "target"]) {
      const answer = await this.ask(`files?name=${encodeURIComponent(files[side].name)}`, { method: "PUT", body: files[side] });
      ids[side] = (await this.read(answer)).id;
    }
    const body = JSON.stringify({ ...ids, model, effort, pairs });
    const job = await this.read(await this.ask("jobs", { method: "POST", body }));
    this.orders.set(job.id, { files, model, effort });
    this.watched = job.id;
    this.jobs = [...(this.jobs ?? []), job];
  }

  async again(job, pairs) {
    await this.order({ ...this.orders.get(job.id), pairs });
    this.home();
  }

  async read(answer) {
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.error);
    return content;
  }

  async poll() {
    try {
      const { jobs } = await this.read(await this.ask("jobs"));
      const before = JSON.stringify(this.jobs);
      this.jobs = jobs;
      if (!this.viewer && JSON.stringify(jobs) !== before) this.renderJobs();
      const watched = jobs.find(({ id }) => id === this.watched);
      if (watched?.state === "done" && !this.viewer) await this.show(watched);
    } catch (error) {
      if (this.message) this.message.textContent = "The app has ended; start it again with ltenet app.";
    }
    setTimeout(() => this.poll(), 400);
  }

  renderJobs() {
    this.list.replaceChildren(...(this.jobs ?? []).slice().reverse().map((job) => this.card(job)));
  }

  card(job) {
    const live = job.state === "queued" || job.state === "running";
    const stages = job.stages.map(({ name, share }) => {
      const bar = el("i.bar", {}, el("i"));
      bar.firstChild.style.width = `${100 * share}%`;
      return el(`li${share >= 1 ? ".full" : ""}`, {}, el("span", { text: STAGES[name] ?? name }), bar);
    });
    return el(`article.job.${job.state}`, { "data-job": job.id },
      el("div.line", {},
        el("b", { text: `${job.source} → ${job.target}` }),
        el("small", { text: STATES[job.state] }),
        live ? el("button.quiet", { type: "button", text: "Cancel", onclick: () => this.cancel(job) }) : null,
        job.state === "done" ? el("button.quiet.open", { type: "button", text: "Open", onclick: () => this.show(job) }) : null),
      live && stages.length ? el("ol", {}, ...stages) : null,
      job.message ? el("p.message", { text: job.message }) : null);
  }

  async cancel(job) {
    if (this.watched === job.id) this.watched = null;
    await this.ask(`jobs/${job.id}`, { method: "DELETE" });
  }

  async show(job) {
    this.watched = null;
    const [description, packed] = await Promise.all([
      this.ask(`jobs/${job.id}/scene.json`).then((answer) => answer.json()),
      this.ask(`jobs/${job.id}/scene.bin`).then((answer) => answer.arrayBuffer()),
    ]);
    const arrays = await openScene(description, packed);
    const back = el("button.quiet.back", { type: "button", text: "New pair", onclick: () => this.home() });
    const section = el("section.downloads", {}, el("h2", { text: "Download" }),
      ...job.downloads.map(({ name, title }) =>
        el("button.download", { type: "button", "data-name": name, onclick: () => this.save(job, name) }, icon("down"), el("span", { text: title }))));
    const known = this.orders.has(job.id);
    const pairs = new Pairs({ most: this.about.pairs, given: job.pairs, again: known ? (list) => this.again(job, list) : null });
    this.files = { source: null, target: null };
    this.viewer = new Viewer(this.root, description, arrays, { head: [back], section, pairs });
    document.title = description.title;
    window.ltenet.viewer = this.viewer;
  }

  async save(job, name) {
    const answer = await this.ask(`jobs/${job.id}/${name}`);
    if (answer.ok) download(await answer.blob(), name);
  }
}
