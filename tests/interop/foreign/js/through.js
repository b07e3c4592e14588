// Writing and reading until SIGTERM with kafkajs, with a line for each record as Kafka's verifiable
// tools print it: what goes on around the clients, a promotion for instance, is somebody else's work.
//
// SASL_USER and SASL_PASSWORD of the environment are who it is; the group is called like the topic.
//
//   node through.js BOOTSTRAP TOPIC 0 write|read
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic, , how] = process.argv.slice(2)
const username = process.env.SASL_USER
const sasl = { mechanism: 'plain', username, password: process.env.SASL_PASSWORD }
const kafka = new Kafka({
  brokers: bootstrap.split(','),
  ...(username ? { sasl } : {}),
  // Brokers of a test may take a login for 3 s. By kafkajs' own 10 s before the end it would log in again
  // with each request, which Kafka refuses within the same second.
  reauthenticationThreshold: 1000,
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 100 },
})
let going = true
process.on('SIGTERM', () => { going = false })

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const tell = (name, value) => console.log(JSON.stringify({ name, value, timestamp: Date.now() }))

async function write() {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (let number = 0; going; number += 1) {
    const value = String(number)
    try {
      await producer.send({ topic, messages: [{ value }], acks: -1 })
      tell('producer_send_success', number)
    } catch (error) {
      tell('producer_send_error', number)
    }
    await pause(5)
  }
  await producer.disconnect()
}

async function read() {
  const consumer = kafka.consumer({ groupId: `${topic}-readers`, heartbeatInterval: 1000 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ message }) => tell('record_data', Number(message.value.toString())),
  })
  while (going) await pause(50)
  // Where a login is renewed while a request is under way, kafkajs takes the answer to that for the
  // login's, and may wait for the other one for ever.
  await Promise.race([consumer.disconnect(), pause(5000)])
}

(how === 'write' ? write() : read()).then(() => process.exit(0), (error) => {
  console.error(error)
  process.exit(1)
})
