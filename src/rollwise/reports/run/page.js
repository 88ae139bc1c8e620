// The report page's controls: the x axis of the curves, and the search through the rollouts. Plain script, no request.
// Texts of a run are only ever set as text, never as markup.
(() => {
  "use strict";
  const PAGE = 25; // groups shown at once
  const PAUSE = 120; // milliseconds without a key before a search begins

  document.documentElement.classList.add("js");

  // ---- one x axis at a time, the same in every figure that has it ----

  function chooseAxis(name) {
    for (const figure of document.querySelectorAll(".tabbed")) {
      for (const part of figure.querySelectorAll("[data-tab]")) {
        const chosen = part.dataset.tab === name;
        if (part.tagName === "BUTTON") part.setAttribute("aria-pressed", String(chosen));
        else part.classList.toggle("chosen", chosen);
      }
    }
  }
  for (const button of document.querySelectorAll(".tabs button")) {
    button.addEventListener("click", () => chooseAxis(button.dataset.tab));
  }

  // ---- the rollouts ----

  const source = document.getElementById("rollouts-data");
  if (!source) return;
  const held = JSON.parse(source.textContent);
  const groups = held.groups.map((row) => Object.fromEntries(held.fields.map((name, i) => [name, row[i]])));
  const control = (name) => document.querySelector(`#rollouts [name="${name}"]`);
  const list = document.querySelector("#rollouts .groups");
  const status = document.querySelector("#rollouts .status");
  const [previous, next] = document.querySelectorAll("#rollouts .turn button");
  let found = groups;
  let first = 0;

  function element(tag, kind, text) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** All text of a group in small letters, made once. */
  function haystack(group) {
    group.hay ??= [group.id, group.prompt, group.lane, group.category, ...group.rollouts.flatMap((r) => [r[1], r[2]])]
      .filter(Boolean)
      .join("\n")
      .toLowerCase();
    return group.hay;
  }

  function bound(name, otherwise) {
    const value = control(name).value;
    return value === "" ? otherwise : Number(value);
  }

  function search() {
    const words = control("search").value.trim().toLowerCase();
    const [low, high] = [bound("from", -Infinity), bound("to", Infinity)];
    const everyStep = low === -Infinity && high === Infinity;
    const wanted = ["outcome", "lane", "purpose", "category"].filter((name) => control(name)?.value);
    found = groups.filter(
      (group) =>
        wanted.every((name) => group[name] === control(name).value) &&
        (everyStep || (group.step !== null && group.step >= low && group.step <= high)) &&
        (!words || haystack(group).includes(words)),
    );
    if (control("order").value === "latest") found.reverse();
    first = 0;
    show();
  }

  function show() {
    const words = control("search").value.trim().toLowerCase();
    const shown = found.slice(first, first + PAGE);
    list.replaceChildren(...shown.map((group) => card(group, words)));
    const span = shown.length ? `${first + 1}–${first + shown.length} of ` : "";
    status.textContent = `${span}${found.length.toLocaleString("en")} ${found.length === 1 ? "group" : "groups"}`;
    previous.disabled = first === 0;
    next.disabled = first + PAGE >= found.length;
  }

  function turn(by) {
    first += by;
    show();
    document.getElementById("rollouts").scrollIntoView({ block: "start" });
  }

  function card(group, words) {
    const made = element("article", "group");
    const facts = element("p", "facts");
    const said = [
      group.step === null ? "" : `step ${group.step}`,
      group.outcome,
      group.lane,
      group.category,
      group.expected === null ? "" : `expected ${group.expected.toFixed(2)}`,
      group.purpose === "train" ? (group.trained ? "" : "not trained on") : `to ${group.purpose}`,
      group.id,
    ];
    said.filter(Boolean).forEach((fact, i) => {
      facts.append(i ? " · " : "", element("span", fact === group.outcome ? "outcome" : "", fact));
    });
    const prompt = element("div", "text prompt");
    mark(prompt, group.prompt || group.id, words);
    made.append(facts, prompt, rollouts(group, words));
    return made;
  }

  function rollouts(group, words) {
    const box = element("details");
    const total = group.rollouts.reduce((sum, rollout) => sum + rollout[3], 0);
    const byReward = new Map();
    for (const [reward, , , times] of group.rollouts) byReward.set(reward, (byReward.get(reward) ?? 0) + times);
    const rewards = [...byReward].map(([reward, times]) => number(reward) + (times > 1 ? ` ×${times}` : ""));
    const brief = rewards.length > 10 ? [...rewards.slice(0, 10), "…"] : rewards;
    box.append(element("summary", "", `${total} ${total === 1 ? "rollout" : "rollouts"}: ${brief.join(", ")}`));
    const fill = () => {
      if (box.children.length > 1) return;
      for (const [reward, text, label, times] of group.rollouts) {
        const one = element("div", "rollout");
        const head = [`reward ${number(reward)}`, label, times > 1 ? `×${times}` : ""].filter(Boolean).join(" · ");
        const body = element("div", "text");
        if (text !== null) mark(body, text, words);
        one.append(element("p", "facts", head), body);
        box.append(one);
      }
    };
    box.addEventListener("toggle", fill);
    if (words && group.rollouts.some((rollout) => rollout[1]?.toLowerCase().includes(words))) {
      fill();
      box.open = true;
    }
    return box;
  }

  function number(reward) {
    return reward === null ? "failed" : String(Number(reward.toPrecision(3)));
  }

  /** Put text into a node, with what was searched for marked. */
  function mark(node, text, words) {
    const small = text.toLowerCase();
    let at = 0;
    // A letter whose small form is longer (İ) would shift the marks: then none are made.
    while (words && small.length === text.length) {
      const hit = small.indexOf(words, at);
      if (hit < 0) break;
      node.append(text.slice(at, hit), element("mark", "", text.slice(hit, hit + words.length)));
      at = hit + words.length;
    }
    node.append(text.slice(at));
  }

  let waiting;
  for (const input of document.querySelectorAll("#rollouts .controls input, #rollouts .controls select")) {
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, PAUSE);
    });
  }
  document.querySelector("#rollouts form").addEventListener("submit", (event) => event.preventDefault());
  previous.addEventListener("click", () => turn(-PAGE));
  next.addEventListener("click", () => turn(PAGE));
  search();
})();
