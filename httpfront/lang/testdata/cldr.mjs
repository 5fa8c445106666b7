// Writes cldr.json, what the ICU library of this Node.js says of the languages:
//
//     node testdata/cldr.mjs > testdata/cldr.json
//
// The tests hold the texts of this package against it. ICU has the data of the
// Unicode Common Locale Data Repository of the version that the file names.
import { readdirSync } from 'node:fs'

const counts = [1, 2, 3, 5, 11, 20, 21, 22, 100]
const regions = {
  'en-US': ['GB', 'IN', 'ZA'],
  'es-ES': ['419', 'AR', 'CL', 'CO', 'CR', 'MX', 'PE', 'US'],
  'de-DE': ['AT', 'LI'],
  'fr-FR': ['BE', 'CA', 'CH', 'LU', 'MA'],
  'pt-BR': ['AO', 'MZ', 'PT'],
  'ar-EG': ['AE', 'DZ', 'IQ', 'LY', 'MA', 'SA', 'TN'],
  'ms-MY': ['BN', 'SG'],
  'ru-RU': ['KZ'],
}
const numbers = tag => [7, 1234, 12345, 1234567].map(n => new Intl.NumberFormat(tag).format(n))

function facts(tag) {
  const rules = new Intl.PluralRules(tag)
  const clock = new Intl.DateTimeFormat(tag, { timeStyle: 'medium', timeZone: 'UTC' })
  const unit = u => counts.map(n => new Intl.NumberFormat(tag, { style: 'unit', unit: u, unitDisplay: 'long' }).format(n))
  return {
    numbers: numbers(tag),
    percent: new Intl.NumberFormat(tag, { style: 'percent' }).format(0.42),
    clock: ['00:00:00', '03:04:05', '12:00:00', '15:04:05'].map(t => clock.format(new Date(`2026-01-02T${t}Z`))),
    plurals: Array.from({ length: 202 }, (_, n) => rules.select(n)[0]).join(''),
    minute: unit('minute'), hour: unit('hour'), day: unit('day'),
    regions: Object.fromEntries((regions[tag] ?? []).map(r => [r, numbers(`${tag.split('-')[0]}-${r}`)])),
  }
}

const tags = readdirSync(new URL('../texts', import.meta.url)).map(f => f.replace('.json', '')).sort()
console.log(JSON.stringify({
  cldr: process.versions.cldr, icu: process.versions.icu,
  languages: Object.fromEntries(tags.map(t => [t, facts(t)])),
}, null, 1))
