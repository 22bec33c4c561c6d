// The worker of one Network: owns an instance of the module and answers phonebit.mjs, call by call. A classic script, so
// that a page's worker and Node.js' load the module's phonebit.js alike.
"use strict";

const isNode = typeof importScripts === "undefined";
const port = isNode ? require("worker_threads").parentPort : self;
let engine, network, description;

function text(string) {
  const bytes = engine.lengthBytesUTF8(string) + 1;
  const address = engine._malloc(bytes);
  engine.stringToUTF8(string, address, bytes);
  return address;
}

// What a call returned, where 0 means that it failed.
function checked(result) {
  if (result === 0) throw new Error(engine.UTF8ToString(engine._phonebit_web_error()));
  return result;
}

const told = (address) => JSON.parse(engine.UTF8ToString(checked(address)));

async function makeModule(folder, threads) {
  const place = isNode ? require("url").fileURLToPath(folder) : folder;
  const options = { threads, locateFile: (name) => place + name, mainScriptUrlOrBlob: place + "phonebit.js" };
  if (isNode) {
    options.wasmBinary = require("fs").readFileSync(place + "phonebit.wasm"); // Node.js fetches no paths
    return require(place + "phonebit.js")(options);
  }
  importScripts(place + "phonebit.js");
  return PhoneBitModule(options);
}

const calls = {
  async load({ folder, file, device, threads }) {
    engine = await makeModule(folder, threads);
    const bytes = checked(engine._malloc(file.byteLength));
    engine.HEAPU8.set(new Uint8Array(file), bytes);
    const name = text(device);
    try {
      network = checked(engine._phonebit_web_load(bytes, file.byteLength, name, threads));
    } finally {
      engine._free(bytes);
      engine._free(name);
    }
    description = told(engine._phonebit_web_describe(network));
    return description;
  },

  // Outputs as buffers, one per tensor. `image`, in place of `inputs`: {data, width, height} of RGBA levels.
  forward({ inputs, image, batch }) {
    let place = null;
    if (image) {
      const address = checked(engine._phonebit_web_image(network, image.width, image.height));
      engine.HEAPU8.set(new Uint8Array(image.data), address);
      place = told(engine._phonebit_web_prepare(network, 0, image.width, image.height));
    } else {
      inputs.forEach((content, i) => {
        const address = checked(engine._phonebit_web_input(network, i, content.byteLength));
        engine.HEAPU8.set(new Uint8Array(content), address);
      });
    }
    const begin = performance.now();
    checked(engine._phonebit_web_forward(network, batch));
    const milliseconds = performance.now() - begin;
    const outputs = description.outputs.map((_, i) => {
      const address = engine._phonebit_web_output(network, i);
      return engine.HEAPU8.slice(address, address + engine._phonebit_web_output_bytes(network, i)).buffer;
    });
    return { outputs, place, milliseconds };
  },

  profile({ batch, repeats }) {
    return told(engine._phonebit_web_profile(network, batch, repeats));
  },
};

async function answer({ id, name, request }) {
  try {
    const result = await calls[name](request);
    port.postMessage({ id, result }, name === "forward" ? result.outputs : []);
  } catch (error) {
    port.postMessage({ id, error: error.message || String(error) });
  }
}

if (isNode) port.on("message", answer);
else port.onmessage = (event) => answer(event.data);
