// verdicts.js REPORT : a line for each test of mocha's report, which stands behind what the tests print
const text = require('fs').readFileSync(process.argv[2], 'utf8');
const report = JSON.parse(text.slice(text.indexOf('{\n  "stats"')));
for (const test of report.pending) console.log('SKIP', test.fullTitle);
const pending = new Set(report.pending.map(test => test.fullTitle));
for (const test of report.tests.filter(test => !pending.has(test.fullTitle))) {
  const why = String(test.err.message ?? '').split('\n')[0];
  console.log(...(test.err.message === undefined ? ['PASS', test.fullTitle] : ['FAIL', test.fullTitle, '--', why]));
}
