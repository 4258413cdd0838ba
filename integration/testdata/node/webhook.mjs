// A webhook endpoint on the port of the first argument that verifies each call,
// by the reference library, with each of the keys that are the other arguments.
// It answers the first call of an id with 500 and the next with 200, and writes
// one line of JSON for each call, with the body in base64.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const [port, ...keys] = process.argv.slice(2);
const seen = new Set();

function verifies(key, body, headers) {
  try {
    new Webhook(key).verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  const id = request.headers["webhook-id"];
  const later = { ...request.headers, "webhook-id": id + "0" };
  const altered = body.toString().replace("{", "{ ");
  response.statusCode = seen.has(id) ? 200 : 500;
  seen.add(id);
  process.stdout.write(JSON.stringify({
    call: id,
    status: response.statusCode,
    timestamp: request.headers["webhook-timestamp"],
    signatures: (request.headers["webhook-signature"] ?? "").split(" ").length,
    verified: keys.map((key) => verifies(key, body.toString(), request.headers)),
    forged: keys.some((key) => verifies(key, altered, request.headers) || verifies(key, body.toString(), later)),
    body: body.toString("base64"),
  }) + "\n");
  response.end();
});
server.listen(Number(port), "127.0.0.1", () => process.stdout.write(JSON.stringify({ listening: true }) + "\n"));
