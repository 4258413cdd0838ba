// The MCP host of the integration tests, on the TypeScript SDK: it starts the
// server that its arguments name, takes one command on each line of stdin, and
// gives one answer on each line of stdout, both JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { createInterface } from "node:readline";

const [command, ...args] = process.argv.slice(2);
const transport = new StdioClientTransport({ command, args, stderr: "inherit" });
const client = new Client({ name: "integration", version: "1.0.0" });
const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");
// What is no MCP frame on the server's stdout ends up here.
client.onerror = (error) => say({ noise: error.message });

await client.connect(transport);
// The client checks structured results against the schemas that it has listed.
const { tools } = await client.listTools();

const commands = {
  tools: async () => ({ tools }),
  // Every tool answers with text too, for hosts that read nothing else.
  async call({ name, arguments: given }) {
    const result = await client.callTool({ name, arguments: given });
    return {
      failed: result.isError === true,
      text: result.content.map((c) => c.text).join(""),
      result: result.structuredContent,
      meta: result._meta,
    };
  },
  resources: async () => ({ resources: (await client.listResources()).resources }),
  read: async ({ uri }) => ({ text: (await client.readResource({ uri })).contents[0].text }),
};

say({ connected: true, server: client.getServerVersion(), instructions: client.getInstructions() });
for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  commands[given.do](given).then(
    (answer) => say({ answers: given.number, ...answer }),
    (error) => say({ answers: given.number, error: `${error.code ?? ""} ${error.message}`.trim() }),
  );
}
await client.close();
process.exit(0);
