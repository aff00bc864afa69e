// Topics, configs, the cluster, by the admin client
const assert = require('node:assert')
const { ConfigResourceTypes } = require('kafkajs')
const { admin, create, fresh, numbers, read, send, text, until, valued } = require('./kit')

const partitions = async topic => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length

module.exports = {
  async 'cluster-described'() {
    const cluster = await admin.describeCluster()
    assert.equal(cluster.brokers.length, 1)
    assert.equal(cluster.controller, cluster.brokers[0].nodeId)
    assert(cluster.clusterId)
  },

  async 'topic-life'() {
    const topic = await create(3)
    assert((await admin.listTopics()).includes(topic))
    assert.equal(await partitions(topic), 3)
    await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
    await until('5 partitions', async () => await partitions(topic) === 5)
    await admin.deleteTopics({ topics: [topic] })
    await until('gone', async () => !(await admin.listTopics()).includes(topic))
  },

  async 'topic-errors'() {
    const topic = await create()
    // false stands for TOPIC_ALREADY_EXISTS
    assert.equal(await admin.createTopics({ topics: [{ topic }] }), false)
    const refused = asked => new Promise((resolve, reject) =>
      admin.createTopics({ topics: [asked] }).then(reject, error => resolve(error.errors[0].type)))
    assert.equal(await refused({ topic: 'a name with spaces' }), 'INVALID_TOPIC_EXCEPTION')
    assert.equal(await refused({ topic: fresh('topic'), numPartitions: 0 }), 'INVALID_PARTITIONS')
    assert.equal(await refused({ topic: fresh('topic'), replicationFactor: 3 }), 'INVALID_REPLICATION_FACTOR')
  },

  async 'topic-configs'() {
    const topic = await create(1, { 'retention.ms': '12345678' })
    const retention = async () => {
      const asked = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] }
      const answer = await admin.describeConfigs({ includeSynonyms: false, resources: [asked] })
      return answer.resources[0].configEntries[0].configValue
    }
    assert.equal(await retention(), '12345678')
    const configEntries = [{ name: 'retention.ms', value: '87654321' }]
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }]
    await admin.alterConfigs({ validateOnly: false, resources })
    await until('the new value', async () => await retention() === '87654321')
  },

  async 'broker-configs'() {
    const id = String((await admin.describeCluster()).controller)
    const resources = [{ type: ConfigResourceTypes.BROKER, name: id }]
    const { configEntries } = (await admin.describeConfigs({ includeSynonyms: true, resources })).resources[0]
    assert.equal(configEntries.find(entry => entry.configName === 'num.partitions').configValue, '4')
  },

  async 'offsets-and-times'() {
    const topic = await create()
    await send(topic, [1000, 2000, 3000].map(at => ({ value: 'x', timestamp: String(1600000000000 + at) })))
    const { low, high } = (await admin.fetchTopicOffsets(topic))[0]
    assert.deepEqual([low, high], ['0', '3'])
    const at = async time => (await admin.fetchTopicOffsetsByTimestamp(topic, time))[0].offset
    assert.equal(await at(1600000001500), '1')
    // nothing is that late: the client gives the end
    assert.equal(await at(4000000000000), '3')
  },

  async 'records-deleted'() {
    const topic = await create()
    await send(topic, valued(numbers(10)))
    // it deletes only of topics in its cache, which this fills
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '6' }] })
    assert.equal((await admin.fetchTopicOffsets(topic))[0].low, '6')
    assert.deepEqual(text(await read(topic, 4)), numbers(10).slice(6))
  },

  async 'reassignments-listed'() {
    assert.deepEqual((await admin.listPartitionReassignments({})).topics, [])
  },
}
