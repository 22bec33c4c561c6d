// After VERSION and FILES, which phonebit web writes: all files of the site, kept for use without a network, with the
// headers that make a page cross-origin isolated, for hosts that cannot send them.
const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};
const NAME = `phonebit ${self.registration.scope} `;

self.addEventListener("install", (event) => {
  const keep = async () => {
    const cache = await caches.open(NAME + VERSION);
    await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
    await self.skipWaiting();
  };
  event.waitUntil(keep());
});

self.addEventListener("activate", (event) => {
  const replace = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith(NAME) && name !== NAME + VERSION);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(replace());
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || !event.request.url.startsWith(self.registration.scope)) return;
  const answer = async () => {
    const cache = await caches.open(NAME + VERSION);
    const kept = await cache.match(event.request, { ignoreSearch: true });
    const found = kept ?? (await fetch(event.request));
    if (found.type !== "basic" && found.type !== "default") return found;
    const headers = new Headers(found.headers);
    for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
    return new Response(found.body, { status: found.status, statusText: found.statusText, headers });
  };
  event.respondWith(answer());
});
