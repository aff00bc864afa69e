// Transactions
const assert = require('node:assert')
const { admin, client, create, fresh, read, send, sleep, text, valued } = require('./kit')

// some 10 seconds for a coordinator that is not there yet, not a minute
const kafka = client(5)
const producer = (options = {}) =>
  kafka.producer({ transactionalId: fresh('txn'), maxInFlightRequests: 1, idempotent: true, ...options })

module.exports = {
  async 'transaction-commit-and-abort'() {
    const topic = await create()
    const one = producer()
    await one.connect()
    for (const end of ['abort', 'commit', 'abort', 'commit']) {
      const transaction = await one.transaction()
      await transaction.send({ topic, messages: valued([end]) })
      await transaction[end]()
    }
    await one.disconnect()
    assert.deepEqual(text(await read(topic, 2, { grace: 1000 })), ['commit', 'commit'])
  },

  async 'transaction-offsets'() {
    const topic = await create()
    const consumerGroupId = fresh('group')
    const one = producer()
    await one.connect()
    for (const [offset, end] of [['1', 'commit'], ['9', 'abort']]) {
      const transaction = await one.transaction()
      await transaction.sendOffsets({ consumerGroupId, topics: [{ topic, partitions: [{ partition: 0, offset }] }] })
      await transaction[end]()
      // it does not try again on CONCURRENT_TRANSACTIONS
      await sleep(500)
    }
    await one.disconnect()
    const topics = await admin.fetchOffsets({ groupId: consumerGroupId, topics: [topic] })
    assert.equal(topics[0].partitions[0].offset, '1')
  },

  async 'transaction-fencing'() {
    const topic = await create()
    const options = { transactionalId: fresh('txn'), retry: { retries: 1 } }
    const [old, young] = [producer(options), producer(options)]
    await old.connect()
    const lost = await old.transaction()
    await lost.send({ topic, messages: valued(['old']) })
    await young.connect()
    const won = await young.transaction()
    await won.send({ topic, messages: valued(['young']) })
    await won.commit()
    const fenced = error => ['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'].includes((error.cause || error).type)
    await assert.rejects(lost.send({ topic, messages: valued(['late']) }), fenced)
    await old.disconnect()
    await young.disconnect()
    assert.deepEqual(text(await read(topic, 1, { grace: 500 })), ['young'])
  },

  async 'transaction-holds-back'() {
    const topic = await create()
    const one = producer()
    await one.connect()
    const transaction = await one.transaction()
    await transaction.send({ topic, messages: valued(['inside']) })
    await send(topic, valued(['outside']))
    await sleep(500)
    // the end that a reader of committed messages sees
    const reading = read(topic, 2)
    let over = false
    reading.then(() => { over = true }, () => {})
    await sleep(2000)
    assert(!over, 'messages came before the commit')
    await transaction.commit()
    assert.deepEqual(text(await reading), ['inside', 'outside'])
    await one.disconnect()
  },
}
