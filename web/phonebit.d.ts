// Types of phonebit.mjs.

export class PhoneBitError extends Error {}

/** Whether more than one thread may run here: Node.js, or a page that is cross-origin isolated. */
export function supportsThreads(): boolean;

export type ElementType = "bit" | "u8" | "f32";

export interface Tensor {
  readonly name: string;
  /** bit: packed, each pixel in whole 32-bit words; a 1 stands for +1, a 0 for -1. */
  readonly dtype: ElementType;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
}

export interface Layer {
  readonly name: string;
  readonly kind: string;
  readonly kernel: string;
  /** Multiply-accumulates per image. */
  readonly macs: number;
  readonly binary: boolean;
  readonly weightBytes: number;
}

export interface Memory {
  /** Bytes. */
  readonly arena: number;
  readonly scratch: number;
  readonly weights: number;
  readonly file: number;
}

export interface LoadOptions {
  /** 1 to the number of cores; default: up to 4 where supportsThreads(), else 1. */
  threads?: number;
  /** "cpu", "cpu:wasm_simd" or "cpu:scalar". */
  device?: string;
  signal?: AbortSignal;
  /** While a URL is fetched; total: null where the server does not tell. Bytes. */
  onProgress?: (progress: { loaded: number; total: number | null }) => void;
  /** Where the package's files are, where a bundler has moved phonebit.mjs away from them. Ends in "/". */
  base?: string | URL;
}

/** RGBA levels, 0 to 255, row by row; ImageData is one. */
export interface Levels {
  readonly data: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

export type Image =
  | Levels
  | ImageBitmap
  | HTMLImageElement
  | HTMLVideoElement
  | HTMLCanvasElement
  | OffscreenCanvas
  | VideoFrame;

export type Input = Float32Array | Uint8Array | Uint8ClampedArray | Array<Float32Array | Uint8Array>;

export interface Output {
  readonly data: Float32Array | Uint8Array;
  readonly dtype: ElementType;
  /** batch, height, width, channels */
  readonly shape: [number, number, number, number];
}

export interface Classification {
  index: number;
  label: string;
  probability: number;
}

export interface Detection {
  index: number;
  label: string;
  score: number;
  /** left, top, right, bottom in pixels of the image. */
  box: [number, number, number, number];
}

/** How long the network itself ran. */
export interface Timed {
  milliseconds: number;
}

export class Network {
  private constructor();
  static load(source: string | URL | ArrayBuffer | ArrayBufferView, options?: LoadOptions): Promise<Network>;
  readonly device: string;
  readonly threads: number;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly layers: readonly Layer[];
  readonly labels: readonly string[];
  readonly memory: Memory;
  summary(): string;
  forward(input: Input | Image, options?: { batch?: number }): Promise<Record<string, Output>>;
  classify(input: Input | Image, options?: { top?: number }): Promise<Classification[] & Timed>;
  detect(image: Image, options?: { score?: number; overlap?: number }): Promise<Detection[] & Timed>;
  profile(options?: { batch?: number; repeats?: number }): Promise<Array<{ name: string; kind: string } & Timed>>;
  close(): void;
}
