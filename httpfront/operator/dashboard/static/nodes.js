// All nodes: how each is, and what it owns.

import {mesh} from './app.js'
import {badge, h, setBadge, text} from './dom.js'
import {clock, count, name, rtt} from './format.js'
import {downBrief, nodeState} from './health.js'
import {Table, textCell} from './table.js'

export function nodes() {
  const table = new Table({name: 'nodes', label: 'Nodes', columns, key: n => n.node, sorted: 0, empty: 'No node is known.'})
  return {
    name: 'nodes',
    title: 'Nodes',
    element: h('div', {class: 'view'}, h('div', {class: 'tools'}, h('h2', {text: 'Nodes'}),
      h('p', {class: 'found', text: 'Times are there and back; rights are those of all rooms together.'})), table.element),
    update: () => table.update([...mesh.lists.nodes.values()], false),
    close: () => table.close(),
  }
}

// middle returns the median of the times from a node to all others, null for none.
export function middle(times) {
  const sorted = times.filter(t => t != null).sort((a, b) => a - b)
  return sorted.length ? sorted[sorted.length >> 1] : null
}

const medianRTT = n => middle(Object.values(n.rtts_ns))

function trouble(n) {
  const down = (mesh.fields.down ?? []).find(d => d.node === n.node)
  if (down) return downBrief(down)
  if (n.state === 'failed') return 'the figures are the last known'
  if (n.store !== 'ok') return n.store
  if (n.clock !== 'ok') return 'its clock differs by more than 400 ms'
  return n.ready ? '' : n.reason ?? ''
}

function clockText(n) {
  const ms = n.clock_offset_ns / 1e6
  return `${ms < 0 ? '−' : '+'}${Math.abs(ms).toFixed(1)} ms`
}

// originText says how an origin is: its state, and what became of its last requests.
function originText(o) {
  const figures = o.recent_requests ? ` · ${Math.round(o.error_rate * 100)} % errors · p50 ${rtt(o.p50_ns)} · p99 ${rtt(o.p99_ns)}` : ''
  const failed = o.last_failure ? ` · last failure ${clock(o.last_failure.at)}: ${o.last_failure.text}` : ''
  return `${o.url}${o.room ? ` of ${o.room}` : ''}: ${o.state}${figures} · ${count(o.active)} in flight${failed}`
}

const columns = [
  {
    title: 'State', class: 'state', value: n => nodeState(n).rank,
    cell() {
      const sign = badge({shape: 'open', label: '', level: 'ok'})
      const why = h('small')
      return {
        element: h('span', {}, sign, why),
        update(n) {
          setBadge(sign, nodeState(n))
          text(why, trouble(n))
        },
      }
    },
  },
  {
    title: 'Node', class: 'name', value: n => name(n, n.node), up: true,
    cell() {
      const b = h('b'), small = h('small')
      return {
        element: h('span', {}, b, small),
        update(n) {
          text(b, name(n, n.node))
          text(small, `${n.node.slice(0, 8)} · ${n.address || 'address unknown'}`)
        },
      }
    },
  },
  {title: 'Site', class: 'at', value: n => n.site, up: true, cell: textCell(n => n.site)},
  {title: 'Version', class: 'version', value: n => n.version, cell: textCell(n => `${n.version} · start ${count(n.boot)}`)},
  {title: 'Leads', class: 'number', value: n => n.leads.length, cell: textCell(n => count(n.leads.length))},
  {title: 'Places', class: 'number', value: n => n.rights.held.places, cell: textCell(n => count(n.rights.held.places))},
  {title: 'In use', class: 'number', value: n => n.rights.in_use, cell: textCell(n => count(n.rights.in_use))},
  {title: 'Free', class: 'number', value: n => n.rights.free.places, cell: textCell(n => count(n.rights.free.places))},
  {title: 'Median time', class: 'number', value: n => medianRTT(n) ?? -1, cell: textCell(n => rtt(medianRTT(n)))},
  {title: 'Origins', class: 'at', value: n => Math.max(0, ...(n.origins ?? []).map(o => o.error_rate)), cell: textCell(n => (n.origins ?? []).map(originText).join('; '))},
  {title: 'Clock', class: 'number', value: n => Math.abs(n.clock_offset_ns), cell: textCell(clockText)},
]
