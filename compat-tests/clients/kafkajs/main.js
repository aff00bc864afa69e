// main.js HOST:PORT : runs all checks, prints a line for each
const { close, open, outcome, run } = require('./kit')

async function main() {
  await open()
  for (const file of ['topics', 'records', 'groups', 'transactions', 'restarts']) {
    for (const [name, body] of Object.entries(require(`./${file}`))) await run(name, body)
  }
  await close()
  process.exit(outcome())
}

main().catch(error => {
  console.log(`FAIL connect -- ${error}`)
  process.exit(1)
})
