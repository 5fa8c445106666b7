// All rooms: what each is doing, as one line.

import {mesh} from './app.js'
import {attr, badge, h, s, setBadge, style, text} from './dom.js'
import {count, route, span} from './format.js'
import {roomState} from './health.js'
import {Table, textCell} from './table.js'

const filters = [
  ['all', 'All', () => true],
  ['queueing', 'People wait', r => r.waiting > 0],
  ['look', 'To look at', r => ['bad', 'warn'].includes(roomState(r).level)],
  ['special', 'Events and holds', r => r.event || r.queue_all || r.suspended],
]

// kept is what was asked for last, for when one comes back.
const kept = {words: '', filter: 'all'}

export function overview() {
  const words = h('input', {
    type: 'search', id: 'filter', value: kept.words, placeholder: 'Name, zone or address', autocomplete: 'off',
    on: {input: () => change(() => { kept.words = words.value })},
  })
  words.value = kept.words
  const found = h('p', {class: 'found', role: 'status'})
  const buttons = filters.map(([id, label]) => h('button', {
    'aria-pressed': String(id === kept.filter), on: {click: () => change(() => { kept.filter = id })},
  }, h('span', {text: label}), h('span', {class: 'n'})))
  const table = new Table({
    name: 'rooms', label: 'Rooms', columns, key: r => r.id, sorted: 0, empty: 'No room is like that.',
  })
  const element = h('div', {class: 'view'},
    h('div', {class: 'tools'},
      h('h2', {text: 'Rooms'}),
      h('label', {class: 'unseen', for: 'filter', text: 'Filter rooms'}), words,
      h('div', {class: 'chips', role: 'group', 'aria-label': 'Show'}, ...buttons), found),
    table.element)
  let others = true

  function change(f) {
    f()
    filters.forEach(([id], i) => attr(buttons[i], 'aria-pressed', String(id === kept.filter)))
    others = true
    update()
  }

  function update() {
    const all = [...mesh.lists.rooms.values()]
    filters.forEach(([, , is], i) => text(buttons[i].lastChild, count(all.filter(is).length)))
    const is = filters.find(([id]) => id === kept.filter)[2]
    const wanted = kept.words.toLowerCase().split(/\s+/).filter(Boolean)
    const rooms = all.filter(r => is(r) && (wanted.length === 0 || matches(r, wanted)))
    text(found, rooms.length === all.length ? '' : `${count(rooms.length)} of ${count(all.length)}`)
    table.update(rooms, others)
    others = false
  }

  return {name: 'overview', title: 'Rooms', element, update, close: () => table.close()}
}

function matches(r, wanted) {
  const all = [r.name, r.zone, ...r.routes.map(route)].join(' ').toLowerCase()
  return wanted.every(word => all.includes(word))
}

const columns = [
  {
    title: 'State', class: 'state', value: r => roomState(r).rank * 1e9 + r.waiting,
    cell() {
      const element = badge({shape: 'open', label: '', level: 'ok'})
      const cell = h('span', {}, element)
      return {element: cell, update: r => setBadge(element, roomState(r))}
    },
  },
  {
    title: 'Room', class: 'name', value: r => r.name, up: true,
    cell() {
      const a = h('a'), where = h('small')
      return {
        element: h('span', {}, a, where),
        update(r) {
          text(a, r.name)
          attr(a, 'href', '#/rooms/' + encodeURIComponent(r.id))
          const rest = r.routes.length > 1 ? ` +${r.routes.length - 1}` : ''
          text(where, (r.zone ? r.zone + ' · ' : '') + (r.routes.length ? route(r.routes[0]) + rest : 'no route'))
        },
      }
    },
  },
  {
    title: 'Active', class: 'number use', value: r => r.active,
    cell: meterCell(r => r.active, r => r.total_active_users),
  },
  {
    title: 'Waiting', class: 'number waiting', value: r => r.waiting,
    cell() {
      const element = h('span')
      return {
        element,
        update(r) {
          text(element, count(r.waiting))
          attr(element, 'data-none', r.waiting === 0 ? 'true' : null)
        },
      }
    },
  },
  {
    title: 'Admitted / min', class: 'number rate', value: r => r.admitted_per_minute,
    cell: meterCell(r => r.admitted_per_minute, r => r.new_users_per_minute),
  },
  {title: 'Wait', class: 'number wait', value: r => r.wait_seconds ?? -1, cell: textCell(wait)},
  {title: 'Last 5 min', class: 'curve', cell: curveCell},
]

export function wait(r) {
  if (r.waiting === 0) return '–'
  return r.wait_seconds == null ? 'unknown' : span(r.wait_seconds)
}

// meterCell shows how much of a limit is used.
function meterCell(part, limit) {
  return () => {
    const n = h('b'), of = h('i'), bar = h('span', {class: 'bar', 'aria-hidden': 'true'}, h('span'))
    return {
      element: h('span', {}, h('span', {class: 'of'}, n, of), bar),
      update(r) {
        const p = part(r), l = limit(r)
        text(n, count(p))
        text(of, ' / ' + count(l))
        style(bar.firstChild, '--part', l > 0 ? Math.min(1, p / l).toFixed(2) : 0)
        attr(bar, 'data-over', l > 0 && p > l ? 'true' : null)
      },
    }
  }
}

// curveCell draws who waits as an area, and who is active as a line below the limit.
function curveCell() {
  const area = s('path', {class: 'area'}), line = s('path', {class: 'line'})
  const cell = h('span', {'aria-hidden': 'true'},
    s('svg', {viewBox: '0 0 100 24', preserveAspectRatio: 'none'}, area, line))
  let waiting, active
  return {
    element: cell,
    update(r) {
      if (r.recent_waiting === waiting && r.recent_active === active) return
      waiting = r.recent_waiting
      active = r.recent_active
      attr(area, 'd', curve(waiting, Math.max(1, ...waiting ?? []), true))
      attr(line, 'd', curve(active, Math.max(1, r.total_active_users, ...active ?? []), false))
    },
  }
}

function curve(values, most, closed) {
  if (!values || values.length < 2 || closed && Math.max(...values) === 0) return ''
  const points = values.map((v, i) => `${(100 * i / (values.length - 1)).toFixed(1)} ${(23 - 22 * v / most).toFixed(1)}`)
  return closed ? `M0 24L${points.join('L')}L100 24z` : `M${points.join('L')}`
}
