// What the checks share: a line per check, clients, topics, waiting
const { execFileSync } = require('node:child_process')
const { Kafka, logLevel } = require('kafkajs')

const PATIENCE = 40000
const client = retries =>
  new Kafka({ clientId: 'compat', brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry: { retries } })
const kafka = client(8)
const admin = kafka.admin()
const start = Date.now()
let failed = 0
let count = 0

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const fresh = kind => `${kind}-${process.pid}-${start}-${++count}`
const text = messages => messages.map(message => String(message.value))
const numbers = length => Array.from({ length }, (_, at) => String(at))
const valued = values => values.map(value => ({ value }))

/** Runs a check under a time limit and prints its line. */
async function run(name, body) {
  let timer
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('not over in time')), 2 * PATIENCE)
  })
  try {
    await Promise.race([body(), limit])
    console.log(`PASS ${name}`)
  } catch (error) {
    failed++
    console.error(error)
    const details = error.errors ? ` ${JSON.stringify(error.errors)}` : ''
    console.log(`FAIL ${name} -- ${error.name}: ${error.message}${details}`.replace(/\s+/g, ' '))
  } finally {
    clearTimeout(timer)
  }
}

/** Waits until the condition holds and returns what it gave. */
async function until(what, condition, patience = PATIENCE) {
  const deadline = Date.now() + patience
  for (;;) {
    const got = await condition()
    if (got) return got
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
    await sleep(50)
  }
}

async function create(numPartitions = 1, configs = {}) {
  const topic = fresh('topic')
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions, configEntries }] })
  return topic
}

/** Sends all in one batch; returns the broker's answer. */
async function send(topic, messages, { acks, compression, ...options } = {}) {
  const producer = kafka.producer(options)
  await producer.connect()
  try {
    return await producer.send({ topic, messages, acks, compression })
  } finally {
    await producer.disconnect()
  }
}

/**
 * Reads a topic from its start, in a group of its own or in a named one, until so many messages came;
 * then reads on for `grace` ms, to see what should not come.
 */
async function read(topic, wanted, { group = fresh('group'), grace = 0 } = {}) {
  const consumer = kafka.consumer({ groupId: group, sessionTimeout: 10000, heartbeatInterval: 500 })
  const got = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ eachMessage: async ({ partition, message }) => { got.push({ partition, ...message }) } })
  try {
    await until(`${wanted} messages, not ${got.length}`, () => got.length >= wanted)
    await sleep(grace)
  } finally {
    await consumer.disconnect()
  }
  return got
}

/** Stops the broker with SIGTERM (`term`) or kill -9 (`kill`) and starts it again. */
function broker(order) {
  const [command, ...words] = process.env.BROKER_CTL.split(' ')
  execFileSync(command, [...words, order])
}

module.exports = {
  admin, broker, client, create, fresh, kafka, numbers, read, run, send, sleep, text, until, valued,
  open: () => admin.connect(),
  close: () => admin.disconnect(),
  outcome: () => (failed ? 1 : 0),
}
