// node tokens.js DRIVER DATABASE QUERY
//
// For each line of standard input the driver reads a token, by itself and in the way that
// docs/fencing.md has. What is printed is how each way of comparing it with the one before ends.
// A line has the token as Go knows it, in JSON.
'use strict';
const [driver, database, query] = process.argv.slice(2);
const file = database.replace(/^sqlite:/, '');

// Each opens the database and returns two functions: plain reads as the driver comes, exact a BigInt.
const drivers = {
  async pg() {
    const client = new (require('pg').Client)(database);
    await client.connect();
    const plain = async () => (await client.query(query)).rows[0].token;
    return { plain, exact: async () => BigInt(await plain()) };
  },
  async mysql2() {
    const read = async (settings) => {
      const client = await require('mysql2/promise').createConnection({ uri: database, ...settings });
      return async () => (await client.query(query))[0][0].token;
    };
    const exact = await read({ supportBigNumbers: true, bigNumberStrings: true });
    return { plain: await read(), exact: async () => BigInt(await exact()) };
  },
  'better-sqlite3'() {
    const db = require('better-sqlite3')(file);
    const exact = db.prepare(query).safeIntegers();
    return { plain: () => db.prepare(query).get().token, exact: () => exact.get().token };
  },
  'node:sqlite'() {
    const db = new (require('node:sqlite').DatabaseSync)(file);
    const exact = db.prepare(query);
    exact.setReadBigInts(true);
    return { plain: () => db.prepare(query).get().token, exact: () => exact.get().token };
  },
  JSON() {
    return { plain: (line) => JSON.parse(line).number, exact: (line) => BigInt(JSON.parse(line).token) };
  },
};

async function look({ plain, exact }, line) {
  const token = await exact(line);
  const text = String(token).padStart(19, '0');
  if (text !== JSON.parse(line).text) throw new Error(`${driver} read ${token} where Go has ${line}`);
  const itself = await (async () => plain(line))().catch((err) => err);
  return { plain: itself, Number: Number(token), BigInt: token, text };
}

function compare(before, now) {
  if (now instanceof Error) return now.code;
  return now > before ? 'newer' : now < before ? 'older' : 'same';
}

(async () => {
  const opened = await drivers[driver]();
  let before;
  for await (const line of require('readline').createInterface({ input: process.stdin })) {
    const now = await look(opened, line);
    const ways = Object.keys(now).map((way) => [way, compare((before || now)[way], now[way])]);
    console.log(JSON.stringify(Object.fromEntries(ways)));
    before = now;
  }
  process.exit();
})();
