// Groups and their offsets
const assert = require('node:assert')
const { admin, create, fresh, kafka, numbers, read, send, text, until, valued } = require('./kit')

module.exports = {
  async 'group-of-two'() {
    const topic = await create(4)
    const groupId = fresh('group')
    const shares = [0, 0]
    const consumers = []
    for (const at of [0, 1]) {
      const times = { sessionTimeout: 10000, heartbeatInterval: 300, rebalanceTimeout: 10000 }
      const consumer = kafka.consumer({ groupId, ...times })
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
        shares[at] = (payload.memberAssignment[topic] || []).length
      })
      await consumer.connect()
      await consumer.subscribe({ topic })
      await consumer.run({ eachMessage: async () => {} })
      consumers.push(consumer)
    }
    await until('two each', () => shares.join() === '2,2')
    const stable = async () => {
      const group = (await admin.describeGroups([groupId])).groups[0]
      return group.state === 'Stable' && group.protocolType === 'consumer' && group.members.length === 2
    }
    await until('stable with two members', stable)
    await consumers[0].disconnect()
    await until('four for the second', () => shares[1] === 4)
    await consumers[1].disconnect()
  },

  async 'commit-and-resume'() {
    const topic = await create()
    const group = fresh('group')
    await send(topic, valued(numbers(10)))
    assert.deepEqual(text(await read(topic, 10, { group })), numbers(10))
    await send(topic, valued(['new']))
    assert.deepEqual(text(await read(topic, 1, { group, grace: 500 })), ['new'])
  },

  async 'offsets-set-and-reset'() {
    const topic = await create()
    const groupId = fresh('group')
    await send(topic, valued(['x', 'y']))
    await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }] })
    const offset = async () => {
      const topics = await admin.fetchOffsets({ groupId, topics: [topic], resolveOffsets: true })
      return topics[0].partitions[0].offset
    }
    assert.equal(await offset(), '1')
    // commits -2, which `resolveOffsets` turns into the earliest offset
    await admin.resetOffsets({ groupId, topic, earliest: true })
    assert.equal(await offset(), '0')
  },

  async 'groups-listed-and-deleted'() {
    const topic = await create()
    const group = fresh('group')
    await send(topic, valued(['x']))
    await read(topic, 1, { group })
    const listed = async () => (await admin.listGroups()).groups.some(({ groupId }) => groupId === group)
    assert(await listed())
    await admin.deleteGroups([group])
    assert(!await listed())
  },
}
