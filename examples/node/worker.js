// Works on the items of this pod's partitions, beside "idalloc watch --partitions --drain=http". README.md says more.
const { readFileSync } = require("node:fs");
const { setTimeout: sleep } = require("node:timers/promises");
const pg = require("pg");

const dir = process.env.IDALLOC_DIR ?? "/var/run/idalloc";
const url = process.env.IDALLOC_URL ?? "http://127.0.0.1:8089";
const read = (name) => readFileSync(`${dir}/${name}`, "utf8");
const identity = () => JSON.parse(read("identity.json"));

// What this pod may work on: partition and token. The token of each later owner is higher, and may have more digits than a number keeps.
function tokens(me) {
  const may = new Map();
  const runs = me.state === "assigned" ? (me.partitions.tokenTexts ?? {}) : {};
  for (const [run, token] of Object.entries(runs)) {
    const [first, last = first] = run.split("-").map(Number);
    for (let n = first; n <= last; n++) may.set(n, token);
  }
  return may;
}

// Says that the work on what is stopping has stopped. Other pods may have that from then on.
async function report(me) {
  let query;
  if (me.state === "draining" && me.stop) query = `stop=${me.stop}`;
  else if (me.partitions?.stopping) query = `partitions=${me.partitions.stopping}&stop=${me.partitions.stop}`;
  else return;
  const headers = { "Idalloc-Drain-Secret": read("drain-secret").trim() };
  try { // It is said again. 409: it was heard before.
    await fetch(`${url}/v1/drained?${query}`, { method: "POST", headers, signal: AbortSignal.timeout(5000) });
  } catch (error) {
    console.log("not reported:", error.message);
  }
}

// Each write carries the token, and the database refuses that of an earlier owner.
const write = `WITH done AS (
    UPDATE item SET runs = runs + 1, token = $1 WHERE token <= $1 AND key % $2 = $3 RETURNING key
  ) INSERT INTO run (key, worker, partition, token) SELECT key, $4, $3, $1 FROM done`;

// All workers make the tables at their start. The lock has one of them do it at a time.
const setup = `BEGIN; SELECT pg_advisory_xact_lock(4711);
  CREATE TABLE IF NOT EXISTS item (key integer PRIMARY KEY, runs bigint NOT NULL DEFAULT 0, token bigint NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS run (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key integer NOT NULL, worker text NOT NULL, partition integer NOT NULL, token bigint NOT NULL);
  INSERT INTO item (key) SELECT generate_series(0, 119) ON CONFLICT DO NOTHING; COMMIT`;

async function main() {
  let ended = false;
  process.on("SIGTERM", () => (ended = true));
  const db = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await db.connect();
  await db.query(setup);
  while (!ended) {
    const me = identity();
    await report(me); // nothing is in hand here
    for (const [partition, token] of tokens(me)) {
      if (ended || tokens(identity()).get(partition) !== token) break; // one step at a time, each one only while it may
      const done = await db.query(write, [token, me.partitions.count, partition, process.env.POD_NAME]);
      if (done.rowCount === 0) console.log("refused: partition", partition, "has a later owner");
    }
    await sleep(100);
  }
  await db.end();
}

main();
