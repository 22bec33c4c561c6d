// How fast a network is in this browser, as phonebit compare reads it.
const WARM_UP = 10;
const MIN_RUNS = 10;
const MAX_RUNS = 200;
const MAX_SECONDS = 3;

const ELEMENTS = { bit: Uint8Array, u8: Uint8Array, f32: Float32Array };

function randomInput({ dtype, height, width, channels }) {
  const bytes = dtype === "bit" ? 4 * Math.ceil(channels / 32) : channels;
  const array = new ELEMENTS[dtype](height * width * bytes);
  if (dtype === "f32") return array.map(() => 2 * Math.random() - 1);
  if (dtype === "u8" || channels % 32 === 0) return array.map(() => 256 * Math.random());
  return array; // what fills a word after the last channel is 0
}

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

/** Times are from the call to the answer: the ways to the network's worker and back are in them, those of layers not. */
export async function measure(network, file) {
  const inputs = network.inputs.map(randomInput);
  const times = [];
  for (let i = 0; i < WARM_UP; i++) await network.forward(inputs);
  const end = performance.now() + 1000 * MAX_SECONDS;
  while (times.length < MIN_RUNS || (times.length < MAX_RUNS && performance.now() < end)) {
    const from = performance.now();
    await network.forward(inputs);
    times.push(performance.now() - from);
  }
  times.sort((a, b) => a - b);
  const layers = await network.profile({ repeats: 10 });
  const { file: file_bytes, arena: arena_bytes, scratch: scratch_bytes, weights: weight_bytes } = network.memory;
  const median_ms = quantile(times, 0.5);
  return {
    file,
    device: network.device,
    isa: network.device.split(":")[1] ?? "",
    threads: network.threads,
    precision: "exact",
    batch: 1,
    runs: times.length,
    warmup: WARM_UP,
    input: "random",
    median_ms,
    min_ms: times[0],
    p90_ms: quantile(times, 0.9),
    fps: 1000 / median_ms,
    memory: { file_bytes, arena_bytes, scratch_bytes, weight_bytes },
    layers: layers.map(({ name, kind, milliseconds }) => ({ name, kind, latency_ms: milliseconds })),
    environment: { browser: navigator.userAgent, processors: navigator.hardwareConcurrency },
  };
}

/** To the clipboard; where the browser gives none, as a file. */
export async function copyResult(result, told) {
  const text = JSON.stringify(result, null, 2);
  try {
    await navigator.clipboard.writeText(text);
    told.textContent = "Copied.";
  } catch {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "phonebit.json";
    link.click();
    URL.revokeObjectURL(link.href);
    told.textContent = "Saved as phonebit.json: this browser gives no clipboard.";
  }
}
