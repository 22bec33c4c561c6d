// PhoneBit for JavaScript: binary neural networks in browsers and Node.js. docs/web.md describes it; phonebit.d.ts has
// the types. Networks run in workers of their own, so that a page never waits.
import { findBoxes, inImage, softmax } from "./tasks.mjs";

const isNode = typeof process === "object" && Boolean(process.versions?.node);
const ARRAYS = { bit: Uint8Array, u8: Uint8Array, f32: Float32Array };

/** Why a network cannot be loaded or run, in the words of the engine. */
export class PhoneBitError extends Error {
  name = "PhoneBitError";
}

const fail = (message) => {
  throw new PhoneBitError(message);
};

const bytesOf = (tensor) =>
  tensor.height * tensor.width * (tensor.dtype === "bit" ? 4 * Math.ceil(tensor.channels / 32)
    : tensor.dtype === "u8" ? tensor.channels : 4 * tensor.channels);

const shapeText = ({ dtype, height, width, channels }) => `${dtype} ${height}x${width}x${channels}`;

/** Whether more than one thread may run here: Node.js, or a page that is cross-origin isolated. */
export function supportsThreads() {
  return typeof SharedArrayBuffer === "function" && (isNode || globalThis.crossOriginIsolated === true);
}

async function defaultThreads() {
  if (!supportsThreads()) return 1;
  const cores = isNode ? (await import("node:os")).availableParallelism() : navigator.hardwareConcurrency;
  return Math.max(1, Math.min(4, cores || 1));
}

async function fetchBytes(url, { signal, onProgress }) {
  if (isNode && !/^https?:/.test(url)) {
    const { readFile } = await import("node:fs/promises");
    return readFile(url, { signal }).catch((error) => (signal?.throwIfAborted(), fail(`${url}: ${error.message}`)));
  }
  const response = await fetch(url, { signal }).catch(
    (error) => (signal?.throwIfAborted(), fail(`${url}: it cannot be fetched: ${error.message}`)),
  );
  if (!response.ok) fail(`${url}: the server answered ${response.status} ${response.statusText}`.trim());
  const total = Number(response.headers.get("content-length")) || null;
  const parts = [];
  let loaded = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    loaded += value.length;
    onProgress?.({ loaded, total });
  }
  const bytes = new Uint8Array(loaded);
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
}

const ownBuffer = (view) =>
  view instanceof ArrayBuffer
    ? view.slice(0)
    : view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);

async function startWorker(base) {
  const url = new URL("worker.js", base);
  if (!isNode) return new Worker(url);
  const { Worker: NodeWorker } = await import("node:worker_threads");
  return new NodeWorker(url);
}

/** One worker, asked one thing after the other. */
class Engine {
  #worker;
  #waiting = new Map();
  #next = 0;
  #end = null;

  constructor(worker) {
    this.#worker = worker;
    const receive = ({ id, result, error }) => {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (isNode && this.#waiting.size === 0) worker.unref();
      if (error === undefined) resolve(result);
      else reject(new PhoneBitError(error));
    };
    const lose = (event) => this.close(`the worker ended: ${event.message ?? event}`);
    if (isNode) worker.on("message", receive).on("error", lose).unref();
    else Object.assign(worker, { onmessage: (event) => receive(event.data), onerror: lose });
  }

  ask(name, request, transfer = []) {
    if (this.#end !== null) return Promise.reject(new PhoneBitError(this.#end));
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#waiting.set(id, { resolve, reject });
      if (isNode) this.#worker.ref();
      this.#worker.postMessage({ id, name, request }, transfer);
    });
  }

  close(reason) {
    if (this.#end !== null) return;
    this.#end = reason;
    this.#worker.terminate();
    for (const { reject } of this.#waiting.values()) reject(new PhoneBitError(reason));
    this.#waiting.clear();
  }
}

const isImage = (input) =>
  !ArrayBuffer.isView(input) && !Array.isArray(input) && typeof input === "object" && input !== null &&
  (("data" in input && "width" in input) || (!isNode && !(input instanceof ArrayBuffer) && "width" in input));

/** {data, width, height} of RGBA levels of whatever a page has as an image. */
function readImage(image) {
  if (image.data !== undefined) {
    const { data, width, height } = image;
    if (data.length !== 4 * width * height)
      fail(`image: got ${data.length} levels of ${width}x${height} pixels, expected ${4 * width * height} (RGBA)`);
    return { data: ownBuffer(data), width, height };
  }
  const width = image.videoWidth ?? image.displayWidth ?? image.naturalWidth ?? image.width;
  const height = image.videoHeight ?? image.displayHeight ?? image.naturalHeight ?? image.height;
  if (!(width > 0 && height > 0)) fail("image: it has no pixels yet; wait until it is loaded");
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0, width, height);
  return { data: context.getImageData(0, 0, width, height).data.buffer, width, height };
}

/** A loaded network. */
export class Network {
  #engine;
  #description;

  /** Not for users: Network.load makes networks. */
  constructor(engine, description) {
    this.#engine = engine;
    this.#description = description;
  }

  /**
   * Loads a .pbit file from a URL, a path (Node.js), a Response, or its bytes.
   * @throws {PhoneBitError} where it is none, or does not fit into memory
   */
  static async load(source, { threads, device = "cpu", signal, onProgress, base = import.meta.url } = {}) {
    signal?.throwIfAborted();
    const count = threads ?? (await defaultThreads());
    if (!Number.isInteger(count) || count < 1) fail(`threads: got ${count}, expected a whole number from 1 on`);
    if (count > 1 && !supportsThreads())
      fail(`threads: got ${count}, but this page is not cross-origin isolated; serve it with the headers of docs/web.md`);
    if (typeof WebAssembly !== "object") fail("this browser has no WebAssembly; use a newer one");
    const given = typeof source === "string" || source instanceof URL
      ? await fetchBytes(isNode && source instanceof URL && source.protocol === "file:"
          ? (await import("node:url")).fileURLToPath(source) : String(source), { signal, onProgress })
      : source;
    if (!(given instanceof ArrayBuffer) && !ArrayBuffer.isView(given))
      fail(`source: got ${typeof given}, expected a URL or the bytes of a .pbit file`);
    const file = ownBuffer(given);
    const engine = new Engine(await startWorker(base));
    const abort = () => engine.close("loading was aborted");
    signal?.addEventListener("abort", abort);
    try {
      const folder = new URL(count > 1 ? "threads/" : "single/", base).href;
      return new Network(engine, await engine.ask("load", { folder, file, device, threads: count }, [file]));
    } catch (error) {
      engine.close(error.message);
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  get device() { return this.#description.device; }
  get threads() { return this.#description.threads; }
  get inputs() { return this.#description.inputs; }
  get outputs() { return this.#description.outputs; }
  get layers() { return this.#description.layers; }
  get labels() { return this.#description.labels; }
  get memory() { return this.#description.memory; }

  /** The layers as lines of text, for people. */
  summary() {
    const lines = this.layers.map(
      (layer) => `${layer.name}  ${layer.kind}  ${layer.kernel}  ${(layer.macs / 1e6).toFixed(2)} MMAC`,
    );
    const ends = [this.inputs, this.outputs].map((tensors) => tensors.map(shapeText).join(", "));
    return [`${ends[0]} -> ${ends[1]} on ${this.device}`, ...lines].join("\n");
  }

  async #run(input, batch) {
    if (isImage(input)) {
      if (batch !== 1) fail(`batch: got ${batch}, expected 1 for an image`);
      const image = readImage(input);
      const { width, height } = image;
      return { ...(await this.#engine.ask("forward", { image, batch }, [image.data])), image: { width, height } };
    }
    const arrays = Array.isArray(input) ? input : [input];
    if (arrays.length !== this.inputs.length)
      fail(`inputs: got ${arrays.length} arrays, expected ${this.inputs.length}`);
    const inputs = arrays.map((array, i) => {
      const tensor = this.inputs[i], expected = ARRAYS[tensor.dtype], bytes = batch * bytesOf(tensor);
      const fits = array instanceof expected || (expected === Uint8Array && array instanceof Uint8ClampedArray);
      if (!fits || array.byteLength !== bytes)
        fail(`input '${tensor.name}': got ${array?.constructor?.name} of ${array?.length} elements, expected ` +
          `${expected.name} of ${bytes / expected.BYTES_PER_ELEMENT} (${batch} x ${shapeText(tensor)})`);
      return ownBuffer(array);
    });
    return this.#engine.ask("forward", { inputs, batch }, inputs);
  }

  /**
   * Runs the network on typed arrays (one per input, NHWC, `batch` images one after the other), or on one image,
   * which is prepared as the file says. Returns {data, dtype, shape: [batch, height, width, channels]} per output name.
   */
  async forward(input, { batch = 1 } = {}) {
    const { outputs } = await this.#run(input, batch);
    return Object.fromEntries(
      this.outputs.map((tensor, i) => {
        const data = new ARRAYS[tensor.dtype](outputs[i]);
        return [tensor.name, { data, dtype: tensor.dtype, shape: [batch, tensor.height, tensor.width, tensor.channels] }];
      }),
    );
  }

  #label(index) {
    return this.labels[index] ?? `class ${index}`;
  }

  /** The `top` most probable classes of an image: [{index, label, probability}], best first, with `milliseconds`. */
  async classify(input, { top = 5 } = {}) {
    const [tensor] = this.outputs;
    if (this.outputs.length !== 1 || tensor.height * tensor.width !== 1 || tensor.dtype !== "f32")
      fail(`this network is no image classifier: its outputs are ${this.outputs.map(shapeText).join(", ")}`);
    const { outputs, milliseconds } = await this.#run(input, 1);
    const scores = new Float32Array(outputs[0]);
    const probabilities = this.layers.at(-1).kind === "softmax" ? Array.from(scores) : softmax(scores);
    const classes = probabilities
      .map((probability, index) => ({ index, label: this.#label(index), probability }))
      .sort((a, b) => b.probability - a.probability)
      .slice(0, top);
    return Object.assign(classes, { milliseconds });
  }

  /** What is in an image: [{index, label, score, box: [left, top, right, bottom] in its pixels}], best first. */
  async detect(input, { score = 0.3, overlap = 0.45 } = {}) {
    const head = this.#description.detection[0];
    if (!head) fail("the file does not say what boxes the output means; convert it again with --detection");
    if (!isImage(input)) fail("detect: expected an image, whose pixels boxes are in");
    const { outputs, place, image, milliseconds } = await this.#run(input, 1);
    const values = new Float32Array(outputs[head.output]), shape = this.outputs[head.output];
    const found = findBoxes(values, shape, head.anchors, { score, overlap })
      .map((item) => ({ ...item, label: this.#label(item.index), box: inImage(item.box, this.inputs[0], image, place) }))
      .filter(({ box }) => box !== null);
    return Object.assign(found, { milliseconds });
  }

  /** Milliseconds of each layer, medians of `repeats`, on what the last run had as inputs: [{name, kind, milliseconds}]. */
  async profile({ batch = 1, repeats = 10 } = {}) {
    const times = await this.#engine.ask("profile", { batch, repeats });
    return this.layers.map(({ name, kind }, i) => ({ name, kind, milliseconds: times[i] }));
  }

  /** Ends the worker and frees its memory. Calls that wait fail, and so do later ones. */
  close() {
    this.#engine.close("the network is closed");
  }
}
