// Real work with kafkajs: produce keyed records idempotently, read them by a group of two, commit,
// and read again with the same group. Prints one JSON object; exits with 1 when anything fails.
//
// With `pattern` the group subscribes to a regular expression that only the topic matches. With
// `transactions` the records are committed in transactions, before each of which one is aborted.
//
// With `rights` it is refused, gives itself the right to write, and takes it away again. With
// `quota` it writes records of 10 kB one by one, and tells how long that took. SASL_USER and
// SASL_PASSWORD of the environment are who it is.
//
//   node main.js BOOTSTRAP TOPIC RECORDS name|pattern|transactions|rights|quota
const kafkajs = require('kafkajs')
const { CompressionTypes, Kafka, logLevel } = kafkajs

const KEYS = 100
const [bootstrap, topic, records, how] = process.argv.slice(2)
const count = Number(records)
const username = process.env.SASL_USER
const sasl = { mechanism: 'plain', username, password: process.env.SASL_PASSWORD }
const kafka = new Kafka({
  brokers: bootstrap.split(','),
  clientId: topic,
  logLevel: logLevel.NOTHING,
  ...(how === 'rights' ? { sasl } : {}),
})

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function produce() {
  const transactional = { transactionalId: `${topic}-js`, maxInFlightRequests: 1 }
  const producer = kafka.producer({
    idempotent: true,
    ...(how === 'transactions' ? transactional : {}),
  })
  await producer.connect()
  let acknowledged = 0
  for (let first = 0; first < count; first += 500) {
    const messages = Array.from({ length: Math.min(500, count - first) }, (_, i) => ({
      key: `key-${(first + i) % KEYS}`,
      value: String(first + i),
      headers: { from: 'kafkajs' },
    }))
    if (how === 'transactions') await transact(producer, messages)
    else await producer.send({ topic, messages, acks: -1, compression: CompressionTypes.GZIP })
    acknowledged += messages.length
  }
  await producer.disconnect()
  return acknowledged
}

async function transact(producer, messages) {
  const aborted = await producer.transaction()
  await aborted.send({ topic, messages: [{ key: 'key-0', value: '-1' }] })
  await aborted.abort()
  const committed = await producer.transaction()
  await committed.send({ topic, messages })
  await committed.commit()
}

async function member(onMessage) {
  const consumer = kafka.consumer({ groupId: `${topic}-js`, sessionTimeout: 10000 })
  await consumer.connect()
  const subscribed = how === 'pattern' ? new RegExp(`^${topic}$`) : topic
  await consumer.subscribe({ topic: subscribed, fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => onMessage(message) })
  return consumer
}

async function consume() {
  const seen = new Set()
  const last = new Map()
  const found = { duplicated: 0, out_of_order: 0 }
  const onMessage = (message) => {
    const key = message.key.toString()
    const number = Number(message.value.toString())
    if (seen.has(number)) found.duplicated += 1
    if (last.has(key) && number < last.get(key)) found.out_of_order += 1
    seen.add(number)
    last.set(key, number)
  }
  const members = await Promise.all([member(onMessage), member(onMessage)])
  const deadline = Date.now() + 60000
  while (seen.size < count && Date.now() < deadline) await pause(50)
  for (const consumer of members) await consumer.disconnect()
  return { consumed: seen.size, ...found }
}

async function again() {
  let read = 0
  const consumer = await member(() => { read += 1 })
  await pause(4000)
  await consumer.disconnect()
  return read
}

async function rights() {
  const found = { refused: 0, written: 0 }
  const producer = kafka.producer({ retry: { retries: 0 } })
  await producer.connect()
  const outcome = async () => {
    try {
      await producer.send({ topic, messages: [{ value: '0' }] })
      return 'written'
    } catch (error) {
      return /not authorized to access topics/i.test(error.message) ? 'refused' : error.message
    }
  }
  const write = async (wanted) => {
    const deadline = Date.now() + 60000
    let came = await outcome()
    while (came !== wanted && Date.now() < deadline) {
      await pause(50) // brokers hear of rights one after the other
      came = await outcome()
    }
    if (came !== wanted) throw new Error(`not ${wanted}: ${came}`)
    found[wanted] += 1
  }
  const given = {
    resourceType: kafkajs.AclResourceTypes.TOPIC,
    resourceName: topic,
    resourcePatternType: kafkajs.ResourcePatternTypes.LITERAL,
    principal: `User:${username}`,
    host: '*',
    operation: kafkajs.AclOperationTypes.WRITE,
    permissionType: kafkajs.AclPermissionTypes.ALLOW,
  }
  const admin = kafka.admin()
  await admin.connect()
  await write('refused')
  await admin.createAcls({ acl: [given] })
  await write('written')
  await admin.deleteAcls({ filters: [given] })
  await write('refused')
  await admin.disconnect()
  await producer.disconnect()
  return found
}

async function limited() {
  const producer = kafka.producer()
  await producer.connect()
  const began = Date.now()
  for (let number = 0; number < count; number += 1) {
    await producer.send({ topic, messages: [{ value: Buffer.alloc(10000) }] })
  }
  await producer.disconnect()
  return { took_ms: Date.now() - began }
}

async function main() {
  if (how === 'rights' || how === 'quota') {
    console.log(JSON.stringify(await (how === 'rights' ? rights() : limited())))
    return
  }
  const produced = await produce()
  const found = await consume()
  const reread = await again()
  console.log(JSON.stringify({ produced, ...found, reread }))
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
