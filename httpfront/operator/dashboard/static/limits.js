// All rate limits: what each is, what nodes count for it, and whether their memory is enough.

import {mesh} from './app.js'
import {attr, badge, h, order, setBadge, show, text} from './dom.js'
import {count, exact, name, plural} from './format.js'
import {forgets, limitState} from './health.js'
import {Table, textCell} from './table.js'

export function limits() {
  const found = h('p', {class: 'found'})
  const table = new Table({name: 'limits', label: 'Rate limits', columns, key: l => l.id, sorted: 0, empty: 'There is no rate limit.'})
  const memory = memoryTable()

  function update() {
    const all = [...mesh.lists.limits.values()], nodes = [...mesh.lists.nodes.values()].filter(n => n.state === 'alive')
    const told = nodes.filter(n => n.limits)
    text(found, (told.length < nodes.length ? `Counted by ${count(told.length)} of ${plural(nodes.length, 'node')}; the others have not said. ` : '') +
      (told.length > 1 ? 'A client is a key at each node that it came to: the first figure is of the node with most, the one below is the sum over all nodes.' : ''))
    show(found, all.length > 0)
    table.update(all, false)
    memory.update(all.length > 0 ? told : [])
  }

  return {
    name: 'limits',
    title: 'Limits',
    element: h('div', {class: 'view'}, h('div', {class: 'tools'}, h('h2', {text: 'Rate limits'}), found), table.element, memory.element),
    update,
    close: () => table.close(),
  }
}

const counts = l => l.state === 'counts'

// twoLines returns a cell with a figure, and what belongs to it below.
function twoLines(write) {
  return () => {
    const b = h('b'), small = h('small')
    return {
      element: h('span', {}, b, small),
      update(l) {
        const [first, second] = write(l)
        text(b, first)
        text(small, second)
      },
    }
  }
}

const keysCell = of => twoLines(l => counts(l) ? [count(of(l).most), of(l).sum > of(l).most ? `${count(of(l).sum)} in sum` : ''] : ['–', ''])

function allowed(l) {
  if (!l.period) return ['–', '']
  return [`${count(l.requests_per_period)} in ${exact(l.period)}`, l.characteristics?.length ? 'by ' + l.characteristics.join(', ') : 'all together']
}

function action(l) {
  if (!l.action) return ['–', '']
  return [l.action, l.mitigation_timeout ? `for ${exact(l.mitigation_timeout)}` : 'until fewer come']
}

function exceeded(l) {
  if (!counts(l)) return ['–', '']
  if (l.most === 0) return ['nothing', 'one node counts']
  return [`${Number(l.delay_seconds.toFixed(2))} s of requests`, `at most ${count(l.most)}`]
}

const columns = [
  {title: 'Order', class: 'number nth', value: l => l.order, up: true, cell: textCell(l => count(l.order))},
  {
    title: 'State', class: 'state', value: l => limitState(l).rank * 1e12 + l.limited.most,
    cell() {
      const sign = badge({shape: 'open', label: '', level: 'ok'})
      return {element: h('span', {}, sign), update: l => setBadge(sign, limitState(l))}
    },
  },
  {title: 'Limit', class: 'name', value: l => l.name, up: true, cell: twoLines(l => [l.name, l.expression ?? ''])},
  {title: 'Allowed', class: 'fact', value: l => l.requests_per_period / l.period || 0, cell: twoLines(allowed)},
  {title: 'Then', class: 'fact', value: l => l.action ?? '', up: true, cell: twoLines(action)},
  {title: 'Over', class: 'fact', value: l => l.scope, up: true, cell: textCell(l => l.scope === 'site' ? 'each site' : 'the mesh')},
  {title: 'Keys', class: 'fact number', value: l => l.keys.most, cell: keysCell(l => l.keys)},
  {title: 'Limited', class: 'fact number', value: l => l.limited.most, cell: keysCell(l => l.limited)},
  {title: 'Exceeded by', class: 'fact', value: l => l.most, cell: twoLines(exceeded)},
]

// memoryTable says of each node how many keys it has, and for how many there is room; those
// that forget keys too early come first.
function memoryTable() {
  const body = h('tbody'), rows = new Map() // by node
  const titles = ['Memory', 'Keys', 'Room for', 'Forgotten too early, in 5 min', 'since its start']
  const element = h('div', {class: 'panel times tall', tabindex: 0, role: 'region', 'aria-label': 'Memory for rate limits', hidden: true},
    h('table', {}, h('caption', {text: 'Memory of nodes for rate limits'}),
      h('thead', {}, h('tr', {}, h('td'), ...titles.map(title => h('th', {scope: 'col', text: title})))), body))

  function row() {
    const head = h('th', {scope: 'row'}), sign = badge({shape: 'open', label: '', level: 'ok'}), cells = titles.slice(1).map(() => h('td'))
    return {
      element: h('tr', {}, head, h('td', {}, sign), ...cells),
      update(n) {
        const m = n.limits
        text(head, name(n, n.node))
        setBadge(sign, forgets(n) ? {label: 'Too small', level: 'warn', shape: 'warn'} : {label: 'Enough', level: 'ok', shape: 'open'})
        ;[m.keys, m.room, m.replaced_lately, m.replaced].forEach((n, i) => text(cells[i], count(n)))
        attr(head.parentNode, 'data-level', forgets(n) ? 'warn' : null)
      },
    }
  }

  function update(nodes) {
    show(element, nodes.length > 0)
    const sorted = nodes.map(n => [forgets(n) ? 0 : 1, name(n, n.node), n])
    sorted.sort((a, b) => a[0] - b[0] || a[1].localeCompare(b[1], 'en', {numeric: true}))
    for (const id of rows.keys()) if (!nodes.some(n => n.node === id)) rows.delete(id)
    for (const [, , n] of sorted) {
      if (!rows.has(n.node)) rows.set(n.node, row())
      rows.get(n.node).update(n)
    }
    order(body, sorted.map(([, , n]) => rows.get(n.node).element))
  }

  return {element, update}
}
