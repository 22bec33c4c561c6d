// Runs networks in Node.js by a module of packaging/web.py:
//   node forward.js MODULE.js < REQUEST
// REQUEST is JSON: {"threads": 1, "runs": [{"file", "device", "batch", "inputs": [path], "outputs": [path]}]}. Writes the
// outputs and prints a list of what is known of each network, or of its error.
"use strict";
const fs = require("fs");

async function main() {
  const request = JSON.parse(fs.readFileSync(0, "utf8"));
  // Node.js fetches no paths.
  const wasmBinary = fs.readFileSync(process.argv[2].replace(/js$/, "wasm"));
  const module = await require(process.argv[2])({ wasmBinary, threads: request.threads });
  const text = (string) => {
    const bytes = module.lengthBytesUTF8(string) + 1;
    const address = module._malloc(bytes);
    module.stringToUTF8(string, address, bytes);
    return address;
  };
  const told = (address) => {
    if (address === 0) throw new Error(module.UTF8ToString(module._phonebit_web_error()));
    return module.UTF8ToString(address);
  };
  const load = (path, device) => {
    const file = fs.readFileSync(path);
    const bytes = module._malloc(file.length);
    module.HEAPU8.set(file, bytes);
    const name = text(device);
    const network = module._phonebit_web_load(bytes, file.length, name, request.threads);
    module._free(bytes);
    module._free(name);
    if (network === 0) told(0);
    return network;
  };
  const run = (wanted) => {
    const network = load(wanted.file, wanted.device);
    const description = JSON.parse(told(module._phonebit_web_describe(network)));
    (wanted.inputs || []).forEach((path, i) => {
      const content = fs.readFileSync(path);
      const address = module._phonebit_web_input(network, i, content.length);
      if (address === 0) told(0);
      module.HEAPU8.set(content, address);
    });
    if (wanted.outputs) {
      if (module._phonebit_web_forward(network, wanted.batch) === 0) told(0);
      wanted.outputs.forEach((path, i) => {
        const address = module._phonebit_web_output(network, i);
        fs.writeFileSync(path, module.HEAPU8.slice(address, address + module._phonebit_web_output_bytes(network, i)));
      });
    }
    if (wanted.repeats) {
      const milliseconds = [];
      for (let i = 0; i < wanted.repeats; i++) {
        const begin = performance.now();
        module._phonebit_web_forward(network, wanted.batch);
        milliseconds.push(performance.now() - begin);
      }
      description.milliseconds = milliseconds;
      description.profile = JSON.parse(told(module._phonebit_web_profile(network, wanted.batch, wanted.repeats)));
    }
    module._phonebit_web_destroy(network);
    return description;
  };
  const results = request.runs.map((wanted) => {
    try {
      return run(wanted);
    } catch (error) {
      return { error: error.message };
    }
  });
  process.stdout.write(JSON.stringify(results), () => process.exit(0)); // workers of threads wait for ever
}

main();
