// Producing and reading
const assert = require('node:assert')
const { CompressionTypes } = require('kafkajs')
const { create, fresh, kafka, numbers, read, send, sleep, text, until, valued } = require('./kit')

module.exports = {
  async 'keys-headers-nulls-times'() {
    const topic = await create()
    const first = { key: 'k', value: 'v', headers: { h: 'x', list: ['1', '2'] }, timestamp: '1600000000000' }
    const answer = await send(topic, [first, { key: 'k2', value: null }, { key: '', value: '' }])
    assert.equal(answer[0].baseOffset, '0')
    const [one, two, three] = await read(topic, 3)
    assert.deepEqual([String(one.key), String(one.value), one.timestamp], ['k', 'v', '1600000000000'])
    assert.deepEqual([String(one.headers.h), one.headers.list.map(String)], ['x', ['1', '2']])
    assert.equal(two.value, null)
    assert.deepEqual([three.key.length, three.value.length], [0, 0])
  },

  async 'acks'() {
    const topic = await create()
    for (const acks of [-1, 1, 0]) await send(topic, [{ value: String(acks) }], { acks })
    assert.deepEqual(text(await read(topic, 3)), ['-1', '1', '0'])
  },

  async 'log-append-time'() {
    const topic = await create(1, { 'message.timestamp.type': 'LogAppendTime' })
    const before = Date.now()
    const answer = await send(topic, [{ value: 'x', timestamp: '1600000000000' }])
    assert(Number(answer[0].logAppendTime) >= before, answer[0].logAppendTime)
    assert.equal((await read(topic, 1))[0].timestamp, answer[0].logAppendTime)
  },

  async 'codec-gzip'() {
    const topic = await create()
    await send(topic, valued(numbers(1000)), { compression: CompressionTypes.GZIP })
    assert.deepEqual(text(await read(topic, 1000)), numbers(1000))
  },

  async 'keys-choose-partitions'() {
    const topic = await create(6)
    await send(topic, numbers(60).map(value => ({ key: `key${value % 6}`, value })))
    const places = new Set((await read(topic, 60)).map(({ key, partition }) => `${key} ${partition}`))
    assert.equal(places.size, 6)
  },

  async 'idempotent'() {
    const topic = await create()
    await send(topic, valued(numbers(100)), { idempotent: true, maxInFlightRequests: 1 })
    assert.deepEqual(text(await read(topic, 100)), numbers(100))
  },

  async 'too-large'() {
    const topic = await create()
    const large = send(topic, [{ value: Buffer.alloc(1500000, 'x') }], { retry: { retries: 0 } })
    await assert.rejects(large, error => error.type === 'MESSAGE_TOO_LARGE')
  },

  async 'topic-by-producing'() {
    const topic = fresh('topic')
    await send(topic, valued(['a']))
    assert.deepEqual(text(await read(topic, 1)), ['a'])
  },

  async 'seek'() {
    const topic = await create()
    await send(topic, valued(numbers(10)))
    const consumer = kafka.consumer({ groupId: fresh('group') })
    const got = []
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    consumer.run({ eachMessage: async ({ message }) => { got.push(message) } })
    consumer.seek({ topic, partition: 0, offset: '7' })
    await until('3 messages', () => got.length >= 3)
    await consumer.disconnect()
    assert.deepEqual(text(got), ['7', '8', '9'])
  },

  async 'a-waiting-reader-wakes'() {
    const topic = await create()
    const consumer = kafka.consumer({ groupId: fresh('group'), maxWaitTimeInMs: 8000 })
    let joined = false
    let came = 0
    consumer.on(consumer.events.GROUP_JOIN, () => { joined = true })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ eachMessage: async () => { came = Date.now() } })
    await until('joined', () => joined)
    await sleep(1500)
    await send(topic, valued(['x']))
    const sent = Date.now()
    await until('the message', () => came)
    assert(came - sent < 4000, `took ${came - sent} ms`)
    // not waited for: the fetch that is under way takes its 8 seconds
    consumer.disconnect()
  },
}
