// The page of phonebit web: networks on images, cameras and random inputs. index.html has its parts by their ids.
import { Network, supportsThreads } from "./package/phonebit.mjs";
import { copyResult, measure } from "./speed.mjs";

const part = (id) => document.getElementById(id);
const make = (tag, text = "", settings = {}) => Object.assign(document.createElement(tag), { textContent: text, ...settings });
const stage = part("stage");
const context = stage.getContext("2d");
const MAX_SIDE = 960;

let network = null;
let source = null; // {name, from}: what Network.load takes
let loads = 0;
let stream = null;
let image = null; // what is on the stage, at its own size: an ImageBitmap or a video

function tell(error) {
  part("error").textContent = error.message ?? String(error);
  part("error").hidden = false;
}

/** Runs `work`; what goes wrong is a sentence on the page. */
async function attempt(work) {
  part("error").hidden = true;
  try {
    return await work();
  } catch (error) {
    tell(error);
  }
}

const isClassifier = () => network.outputs.length === 1 && network.outputs[0].height * network.outputs[0].width === 1;

async function load() {
  const mine = ++loads;
  const threads = Number(part("threads").value);
  part("facts").textContent = `Loading ${source.name} …`;
  try {
    const loaded = await Network.load(source.from, {
      threads,
      onProgress: ({ loaded: bytes, total }) => {
        if (mine === loads && total) part("facts").textContent = `Loading ${source.name}: ${Math.round((100 * bytes) / total)} %`;
      },
    });
    if (mine !== loads) return loaded.close();
    network?.close();
    network = loaded;
  } finally {
    if (mine === loads) part("facts").textContent = network ? facts() : "";
  }
  part("measured").textContent = "";
  part("layers").hidden = part("copy").hidden = true;
  if (!stream && image) {
    show(image, image.width, image.height);
    await recognise();
  }
}

function facts() {
  const [input] = network.inputs;
  const kilobytes = Math.round(network.memory.file / 1000);
  const threads = network.threads === 1 ? "1 thread" : `${network.threads} threads`;
  return `${source.name}: ${kilobytes} kB, ${input.height}×${input.width}×${input.channels}, on ${network.device}, ${threads}`;
}

function show(shown, width, height) {
  if (image !== shown) image?.close?.();
  image = shown;
  const scale = Math.min(1, MAX_SIDE / Math.max(width, height));
  stage.width = Math.max(1, Math.round(width * scale));
  stage.height = Math.max(1, Math.round(height * scale));
  stage.style.width = width < 280 ? "280px" : "";
  stage.style.imageRendering = width < 280 ? "pixelated" : "";
  context.drawImage(image, 0, 0, stage.width, stage.height);
  part("hint").hidden = true;
}

function list(rows) {
  part("results").replaceChildren(
    ...rows.map(({ label, share }) => {
      const row = make("li");
      const bar = make("progress", "", { max: 1, value: share, ariaLabel: label });
      row.append(make("span", label), make("span", `${(100 * share).toFixed(1)} %`), bar);
      return row;
    }),
  );
  if (!rows.length) part("results").append(make("li", "Nothing found"));
}

function drawBoxes(found) {
  const scale = stage.width / (image.videoWidth ?? image.width);
  const size = Math.max(12, stage.width / 30);
  context.lineWidth = Math.max(2, stage.width / 200);
  context.font = `${size}px system-ui, sans-serif`;
  for (const { label, score, box } of found) {
    const [left, top, right, bottom] = box.map((side) => side * scale);
    const text = `${label} ${Math.round(100 * score)} %`;
    context.strokeStyle = context.fillStyle = "#0b6e99";
    context.strokeRect(left, top, right - left, bottom - top);
    context.fillRect(left, Math.max(0, top - 1.3 * size), context.measureText(text).width + size, 1.3 * size);
    context.fillStyle = "#fff";
    context.fillText(text, left + size / 2, Math.max(size, top - 0.3 * size));
  }
}

/** What the network sees on the stage. */
async function recognise() {
  if (!network) return;
  let found;
  if (isClassifier()) {
    found = await network.classify(image);
    list(found.map(({ label, probability }) => ({ label, share: probability })));
  } else {
    found = await network.detect(image);
    list(found.map(({ label, score }) => ({ label, share: score })));
    drawBoxes(found);
  }
  part("latency").textContent = `${found.milliseconds.toFixed(2)} ms`;
  stage.setAttribute("aria-label", found.length ? `Image: ${found[0].label}` : "Image: nothing found");
}

async function showFile(file) {
  stopCamera();
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name ?? "the file"}: this browser does not read it as an image`);
  });
  show(bitmap, bitmap.width, bitmap.height);
  await recognise();
}

function stopCamera() {
  if (!stream) return;
  stream.getTracks().forEach((track) => track.stop());
  stream = image = null; // the last frame stays to be seen
  part("camera").setAttribute("aria-pressed", "false");
}

async function startCamera() {
  if (!navigator.mediaDevices) throw new Error("camera: browsers give it to pages of https:// and localhost only");
  const opened = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } }).catch((error) => {
    throw new Error(`camera: ${error.message}`);
  });
  stream = opened;
  part("camera").setAttribute("aria-pressed", "true");
  const video = make("video", "", { srcObject: opened, muted: true, playsInline: true });
  await video.play();
  while (stream === opened) {
    show(video, video.videoWidth, video.videoHeight);
    await recognise().catch((error) => {
      if (stream === opened && network) throw error; // another network was loaded meanwhile
    });
    await new Promise(requestAnimationFrame);
  }
}

async function bench() {
  if (!network) throw new Error("there is no network to measure; open a .pbit file");
  stopCamera();
  part("bench").disabled = true;
  part("measured").textContent = "Measuring …";
  try {
    const result = await measure(network, source.name);
    const { median_ms: median, min_ms: min, p90_ms: p90, runs } = result;
    part("measured").textContent =
      `Median ${median.toFixed(2)} ms, minimum ${min.toFixed(2)} ms, 90 % below ${p90.toFixed(2)} ms ` +
      `(${runs} runs, ${network.device}, threads: ${network.threads})`;
    part("layers").tBodies[0].replaceChildren(
      ...result.layers.map((layer) => {
        const row = make("tr");
        const time = make("td", layer.latency_ms.toFixed(3), { className: "number" });
        row.append(make("td", layer.name), make("td", layer.kind), time);
        return row;
      }),
    );
    part("layers").hidden = part("copy").hidden = false;
    part("copy").onclick = () => attempt(() => copyResult(result, part("measured")));
  } catch (error) {
    part("measured").textContent = "";
    throw error;
  } finally {
    part("bench").disabled = false;
  }
}

/** Without the headers of isolation the service worker adds them from the next load on: that one comes by itself, once. */
async function keepOffline() {
  if (!navigator.serviceWorker) return;
  await navigator.serviceWorker.register("service_worker.js");
  await navigator.serviceWorker.ready;
  if (!globalThis.crossOriginIsolated && !sessionStorage.getItem("reloaded")) {
    sessionStorage.setItem("reloaded", "yes");
    location.reload();
    return new Promise(() => {});
  }
}

function listen() {
  const on = (id, event, work) => part(id).addEventListener(event, (given) => attempt(() => work(given)));
  on("network", "change", ({ target }) => {
    const chosen = target.selectedOptions[0];
    source = { name: chosen.textContent, from: chosen.value };
    return load();
  });
  on("threads", "change", () => source && load());
  on("file", "change", async ({ target }) => {
    const [file] = target.files;
    target.value = "";
    if (!file) return;
    const before = source;
    source = { name: file.name, from: await file.arrayBuffer() };
    await load().catch((error) => {
      source = before;
      if (network) part("facts").textContent = facts();
      throw new Error(`${file.name}: ${error.message}`);
    });
  });
  on("image", "change", ({ target }) => {
    const [file] = target.files;
    target.value = ""; // else the same file, chosen again, would be no change
    return file && showFile(file);
  });
  on("camera", "click", () => (stream ? stopCamera() : startCamera().finally(stopCamera)));
  on("bench", "click", bench);
  const drop = part("drop");
  drop.addEventListener("dragover", (event) => (event.preventDefault(), drop.classList.add("over")));
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  on("drop", "drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) return showFile(file);
  });
}

async function begin() {
  await keepOffline().catch(() => {}); // a private window has no service workers; the page works without
  const cores = supportsThreads() ? navigator.hardwareConcurrency || 1 : 1;
  for (let count = 1; count <= Math.min(8, cores); count++) part("threads").add(new Option(count, count));
  part("threads").value = Math.min(4, cores);
  const site = await (await fetch("site.json")).json();
  for (const { name, file } of site.networks) part("network").add(new Option(name, file));
  part("samples").replaceChildren(
    ...site.samples.map(({ label, file }) => {
      const button = make("button", "", { type: "button" });
      button.append(make("img", "", { src: file, alt: label }));
      button.addEventListener("click", () => attempt(async () => showFile(await (await fetch(file)).blob())));
      return button;
    }),
  );
  listen();
  source = site.networks[0] && { name: site.networks[0].name, from: site.networks[0].file };
  if (source) await load();
}

await attempt(begin);
document.body.dataset.ready = "yes";
