// Elements without HTML: every text goes through textContent, so that no name can become markup.

/**
 * @param {string} tag e.g. "div.card" or "button#play.icon"
 * @param {object} [properties] attributes; `on...` are listeners, `text` is the text
 * @param {...(Node|string|null)} children
 */
export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag.match(/^[a-z0-9]+/)[0]), tag, properties, children);
}

export function svg(tag, properties = {}, ...children) {
  const name = tag.match(/^[a-z]+/i)[0];
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), tag, properties, children);
}

function fill(element, tag, properties, children) {
  const id = tag.match(/#([\w-]+)/);
  if (id) element.id = id[1];
  for (const [, name] of tag.matchAll(/\.([\w-]+)/g)) element.classList.add(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") element.textContent = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const ICONS = {
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M19.1 4.9l-1.8 1.8M6.7 17.3l-1.8 1.8",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",
  auto: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 7h4.5M12 11h6.5M12 15h6",
  help: "M9 9a3 3 0 1 1 4.2 2.8c-.8.4-1.2 1-1.2 2M12 17.4v.1M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  panel: "M4 5h16v14H4zM15 5v14",
  camera: "M4 8h3.5L9 6h6l1.5 2H20v10H4zM12 10a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  full: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  home: "M4 12a8 8 0 1 0 2.6-5.9M4 4v4.5h4.5",
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M8 5v14M16 5v14",
  close: "M6 6l12 12M18 6L6 18",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.300l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.700l1-1",
  up: "M12 16V5M7 9.500L12 4.500l5 5M5 19.500h14",
  down: "M12 5v11M7 11.500l5 5 5-5M5 20h14",
  chevron: "M6 15l6-6 6 6",
};

export function icon(name) {
  return svg(
    "svg.icon",
    { viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: ICONS[name] }),
  );
}

export function number(value, digits = 0) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function percent(share, digits = 1) {
  return `${number(100 * share, digits)} %`;
}

/** Let the browser save something under a name. */
export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
