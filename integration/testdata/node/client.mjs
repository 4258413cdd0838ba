// The NATS client of the integration tests: one command on each line of stdin,
// one answer or event on each line of stdout, both JSON, payloads in base64. Its
// arguments are the server and, as JSON, further options of the connection.
import { connect } from "nats";
import { createInterface } from "node:readline";

const nc = await connect({
  ...JSON.parse(process.argv[3] ?? "{}"),
  servers: process.argv[2],
  maxReconnectAttempts: -1,
  reconnectTimeWait: 200,
  waitOnFirstConnect: true,
});
const js = nc.jetstream();

const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const arrived = (m) => say({ subject: m.subject, data: Buffer.from(m.data).toString("base64") });

async function pass(messages) {
  for await (const m of messages) arrived(m);
}

const commands = {
  // Plain subscription. The server has it when this is answered.
  async subscribe({ subject }) {
    pass(nc.subscribe(subject));
    await nc.flush();
    return {};
  },
  // Publish to a stream, with its acknowledgement.
  async store({ subject, data }) {
    const ack = await js.publish(subject, Buffer.from(data, "base64"), { timeout: 5000 });
    return { stream: ack.stream, seq: ack.seq, duplicate: ack.duplicate };
  },
  // Everything that a stream holds, from its first message on.
  async replay({ stream }) {
    const consumer = await js.consumers.get(stream);
    pass(await consumer.consume());
    return {};
  },
  // A stream as a test wants it.
  async create({ config }) {
    const jsm = await nc.jetstreamManager();
    await jsm.streams.add(config);
    return {};
  },
  // How many messages a stream holds.
  async held({ stream }) {
    const jsm = await nc.jetstreamManager();
    return { held: (await jsm.streams.info(stream)).state.messages };
  },
  // How the consumers of a stream stand.
  async consumers({ stream }) {
    const jsm = await nc.jetstreamManager();
    const found = await jsm.consumers.list(stream).next();
    return {
      consumers: found.filter((c) => c.config.durable_name).map((c) => ({
        name: c.name, unacknowledged: c.num_ack_pending, waiting: c.num_pending,
      })),
    };
  },
};

say({ connected: true });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  commands[command.do](command).then(
    (answer) => say({ answers: command.number, ...answer }),
    (error) => say({ answers: command.number, error: `${error.code ?? ""} ${error.message}`.trim() }),
  );
}
process.exit(0);
