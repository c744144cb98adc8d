// Light, dark, or as the system has it; remembered where the browser allows.

const ORDER = ["auto", "light", "dark"];
const NAMES = { auto: "Light or dark as the system", light: "Light", dark: "Dark" };
const ICONS = { auto: "auto", light: "sun", dark: "moon" };
const listeners = new Set();
let current = "auto";

try {
  current = ORDER.includes(localStorage.getItem("ltenet-theme")) ? localStorage.getItem("ltenet-theme") : "auto";
} catch {
  // A sandboxed frame has no storage.
}
document.documentElement.dataset.theme = current;
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => listeners.forEach((tell) => tell()));

export function setTheme(name) {
  current = name;
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("ltenet-theme", name);
  } catch {
    // As above.
  }
  for (const tell of listeners) tell();
}

export const cycleTheme = () => setTheme(ORDER[(ORDER.indexOf(current) + 1) % ORDER.length]);
export const themeIcon = () => ICONS[current];
export const themeName = () => NAMES[current];

export function onTheme(tell) {
  listeners.add(tell);
  return () => listeners.delete(tell);
}
