// The queue, by when people came: whose turn it is, and who waits behind the cursor.

import {attr, h, s, show, style, text} from './dom.js'
import {clock, count, minute, span} from './format.js'

const bars = 120 // at most; more buckets are drawn together

export function queue() {
  const turn = s('path', {class: 'turn'}), rest = s('path', {class: 'rest'})
  const cursor = h('div', {class: 'cursor'}, h('span'))
  const chart = h('div', {class: 'buckets', 'aria-hidden': 'true'}, s('svg', {viewBox: '0 0 100 100', preserveAspectRatio: 'none'}, turn, rest), cursor)
  const first = h('span'), last = h('span')
  const axis = h('div', {class: 'axis', 'aria-hidden': 'true'}, first, last)
  const summary = h('p', {class: 'help'})
  const body = h('tbody')
  const details = h('details', {}, h('summary', {text: 'The same as a table'}),
    h('div', {class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Queue by arrival'},
      h('table', {}, h('thead', {}, h('tr', {}, ...['Came', 'Waiting', 'Turn'].map((t, i) => h('th', {scope: 'col', class: i === 1 ? 'number' : null, text: t})))), body)))
  const nobody = h('p', {class: 'empty', text: 'Nobody waits.'})
  const element = h('section', {class: 'panel queue', 'aria-labelledby': 'queue-title'},
    h('h3', {id: 'queue-title', text: 'Queue by arrival'}), summary, nobody, chart, axis, details)
  let lined = ''

  function update({buckets, cursor: until, time}) {
    const some = buckets.length > 0
    for (const part of [chart, axis, details, summary]) show(part, some)
    show(nobody, !some)
    if (!some) return
    const cut = until ? Date.parse(until) : 0
    const ahead = buckets.reduce((n, b) => n + b.waiting * passed(b, cut), 0), all = buckets.reduce((n, b) => n + b.waiting, 0)
    const oldest = (Date.parse(time) - Date.parse(buckets[0].arrived)) / 1000
    text(summary, `The oldest came ${span(oldest)} ago. ` + (until
      ? `It is the turn of all who came before ${clock(until)}: about ${count(Math.round(ahead))} of ${count(all)}.`
      : 'It is nobody’s turn: there is no cursor.'))
    drawBars(buckets, cut)
    if (details.open) table(buckets, cut)
  }

  function drawBars(buckets, cut) {
    const from = Date.parse(buckets[0].arrived), end = stop(buckets.at(-1))
    const width = Math.max((end - from) / bars, buckets[0].seconds * 1000)
    const n = Math.ceil((end - from) / width), sums = new Array(n).fill(0), turns = new Array(n).fill(0)
    for (const b of buckets) {
      const i = Math.min(n - 1, Math.floor((Date.parse(b.arrived) - from) / width))
      sums[i] += b.waiting
      turns[i] += b.waiting * passed(b, cut)
    }
    const most = Math.max(...sums, 1), w = 100 / n, gap = Math.min(0.25, w * 0.15)
    const bar = (i, low, high) => high > low ? `M${(i * w + gap).toFixed(2)} ${(100 - 96 * low / most).toFixed(1)}V${(100 - 96 * high / most).toFixed(1)}H${((i + 1) * w - gap).toFixed(2)}V${(100 - 96 * low / most).toFixed(1)}z` : ''
    attr(turn, 'd', turns.map((v, i) => bar(i, 0, v)).join(''))
    attr(rest, 'd', sums.map((v, i) => bar(i, turns[i], v)).join(''))
    const at = cut ? Math.min(100, Math.max(0, 100 * (cut - from) / (n * width))) : 0
    show(cursor, cut > 0)
    style(cursor, 'left', at.toFixed(1) + '%')
    attr(cursor, 'data-side', at > 50 ? 'left' : 'right')
    if (cut) text(cursor.firstChild, `Cursor ${clock(cut)}`)
    text(first, minute(from))
    text(last, minute(end))
  }

  function table(buckets, cut) {
    const line = b => [minute(b.arrived), count(b.waiting), passed(b, cut) === 1 ? 'now' : passed(b, cut) > 0 ? 'in part' : 'later']
    const lines = buckets.map(line)
    if (JSON.stringify(lines) === lined) return
    lined = JSON.stringify(lines)
    body.replaceChildren(...lines.map(([t, n, turn]) => h('tr', {}, h('th', {scope: 'row', text: t}), h('td', {class: 'number', text: n}), h('td', {text: turn}))))
  }

  return {element, update}
}

const stop = b => Date.parse(b.arrived) + b.seconds * 1000

// passed returns which part of a bucket is before the cursor.
function passed(b, cut) {
  const from = Date.parse(b.arrived)
  return Math.min(1, Math.max(0, (cut - from) / (b.seconds * 1000)))
}
