// Writes cldr.json, what the ICU library of this Node.js says of the languages:
//
//     node testdata/cldr.mjs > testdata/cldr.json
//
// The tests hold the texts of this package against it. ICU has the data of the
// Unicode Common Locale Data Repository of the version that the file names.
import { readdirSync } from 'node:fs'

const counts = [1, 2, 3, 5, 11, 20, 21, 22, 100]
const forms = { zero: 'z', one: '1', two: '2', few: 'f', many: 'm', other: 'o' }
const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
const regions = ['419', ...letters.flatMap(a => letters.map(b => a + b))]

const numbers = tag => [7, 1234, 12345, 1234567].map(n => new Intl.NumberFormat(tag).format(n))

// regional returns the numbers of all regions that ICU knows of a language and
// that are not like those of the tag.
function regional(tag) {
  const own = numbers(tag).join()
  return Object.fromEntries(regions
    .map(r => [r, `${tag.split('-')[0]}-${r}`])
    .filter(([, t]) => new Intl.NumberFormat(t).resolvedOptions().locale === t && numbers(t).join() !== own)
    .map(([r, t]) => [r, numbers(t)]))
}

function facts(tag) {
  const rules = new Intl.PluralRules(tag)
  const clock = new Intl.DateTimeFormat(tag, { timeStyle: 'medium', timeZone: 'UTC' })
  const unit = u => counts.map(n => new Intl.NumberFormat(tag, { style: 'unit', unit: u, unitDisplay: 'long' }).format(n))
  return {
    numbers: numbers(tag),
    regions: regional(tag),
    clock: ['00:00:00', '03:04:05', '12:00:00', '15:04:05'].map(t => clock.format(new Date(`2026-01-02T${t}Z`))),
    plurals: Array.from({ length: 1001 }, (_, n) => forms[rules.select(n)]).join(''), // of 0, 1, 2 and so on
    minutes: unit('minute'), hours: unit('hour'), days: unit('day'),
  }
}

const object = (o, indent, value) => '{\n' + Object.entries(o)
  .map(([k, v]) => `${indent} ${JSON.stringify(k)}: ${value(v)}`).join(',\n') + `\n${indent}}`

const tags = readdirSync(new URL('../texts', import.meta.url)).map(f => f.replace('.json', '')).sort()
const languages = Object.fromEntries(tags.map(t => [t, facts(t)]))
console.log(`{
"cldr": ${JSON.stringify(process.versions.cldr)},
"counts": ${JSON.stringify(counts)},
"languages": ${object(languages, '', l => object(l, ' ', JSON.stringify))}
}`)
