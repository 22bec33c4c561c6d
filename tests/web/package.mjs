// Runs the npm package that packaging/web.py makes: node package.mjs FOLDER < REQUEST
// REQUEST is JSON: [{file, device, threads, image: {path, width, height}, task: "classify" | "detect" | "forward", options}].
// Prints a list of what each gave, or of its error.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Network } = await import(new URL("phonebit.mjs", pathToFileURL(`${process.argv[2]}/`)));

async function run({ file, device, threads, image, task, options }) {
  const network = await Network.load(file, { device, threads });
  try {
    const { path, width, height } = image;
    const given = width === undefined ? new Float32Array(3) : { data: new Uint8Array(readFileSync(path)), width, height };
    const result = await network[task](given, options);
    if (task !== "forward") return { device: network.device, threads: network.threads, result: [...result] };
    const outputs = Object.entries(result).map(([name, { data, shape }]) => ({ name, shape, data: Array.from(data) }));
    return { device: network.device, threads: network.threads, result: outputs };
  } finally {
    network.close();
  }
}

const results = [];
for (const request of JSON.parse(readFileSync(0, "utf8")))
  results.push(await run(request).catch((error) => ({ error: `${error.name}: ${error.message}` })));
process.stdout.write(JSON.stringify(results));
