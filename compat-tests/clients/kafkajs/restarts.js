// The broker stops and comes back
const assert = require('node:assert')
const { broker, create, fresh, read, send, text, valued } = require('./kit')

const resume = order => async () => {
  const topic = await create()
  const group = fresh('group')
  await send(topic, valued(['a', 'b']))
  assert.deepEqual(text(await read(topic, 2, { group })), ['a', 'b'])
  broker(order)
  await send(topic, valued(['c']))
  assert.deepEqual(text(await read(topic, 1, { group, grace: 300 })), ['c'])
  assert.deepEqual(text(await read(topic, 3)), ['a', 'b', 'c'])
}

module.exports = { 'resume-after-term': resume('term'), 'resume-after-kill': resume('kill') }
