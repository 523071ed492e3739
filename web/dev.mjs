// Serves the built page in front of a running server, so that changes show without building the server:
//   node dev.mjs [PORT] [SERVER]     (8000, http://127.0.0.1:7878)
import { createServer, request } from "node:http";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = join(dirname(fileURLToPath(import.meta.url)), "../crates/jindou-server/src/page");
const files = {
  "/page.js": ["page.js", "text/javascript; charset=utf-8"],
  "/worker.js": ["worker.js", "text/javascript; charset=utf-8"],
  "/page.css": ["page.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

/** Listens, and gives the address; `server` is where everything else comes from. */
export async function proxy(port, server) {
  const source = await readFile(join(folder, "../routes/page.rs"), "utf8");
  /** The policies that the server sends. */
  const policy = (name) => new RegExp(`const ${name}: &str = "([^"]*)"`).exec(source)?.[1] ?? "default-src 'none'";
  const { hostname, port: serverPort } = new URL(server);
  const on = createServer((from, to) => {
    const path = new URL(from.url, "http://localhost").pathname;
    const page = path === "/" && !from.url.includes("query=") && (from.headers.accept ?? "").includes("text/html");
    const file = page ? ["page.html", "text/html; charset=utf-8"] : files[path];
    const options = { host: hostname, port: serverPort, path: from.url, method: from.method, headers: from.headers };
    const further = request(options, async (answer) => {
      answer.on("error", () => to.destroy());
      // A server that is older has not all of the files; who may see them is its to say.
      if (file && (answer.statusCode === 200 || answer.statusCode === 404)) {
        answer.resume();
        const headers = { "content-type": file[1], "x-content-type-options": "nosniff" };
        if (page) headers["content-security-policy"] = policy("POLICY");
        const opener = answer.headers["cross-origin-opener-policy"];
        if (page && opener) headers["cross-origin-opener-policy"] = opener;
        if (path === "/worker.js") headers["content-security-policy"] = policy("WORKER_POLICY");
        to.writeHead(200, headers).end(await readFile(join(folder, file[0])));
        return;
      }
      to.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(to);
    });
    further.on("error", () => to.destroy());
    to.on("close", () => further.destroy());
    from.pipe(further);
  });
  await new Promise((resolve) => on.listen(port, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${on.address().port}/`, close: () => on.close() };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { address } = await proxy(Number(process.argv[2] ?? 8000), process.argv[3] ?? "http://127.0.0.1:7878");
  console.log(address);
}
