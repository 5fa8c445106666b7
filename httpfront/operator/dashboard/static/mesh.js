// The map: sites with their nodes, and how far they are from each other.

import {draw, mesh as model} from './app.js'
import {attr, badge, h, icon, order, s, setBadge, setIcon, show, style, text} from './dom.js'
import {compact, count, name, plural, rtt} from './format.js'
import {nodeState} from './health.js'
import {middle} from './nodes.js'

const widest = 8 // sites that fit on the map; more are listed

export function mesh() {
  const lines = s('svg', {class: 'lines', 'aria-hidden': 'true'})
  const labels = h('div', {class: 'labels', 'aria-hidden': 'true'})
  const map = h('div', {class: 'map'}, lines, labels)
  const picked = pickedPanel()
  const times = timesTable()
  const places = new Map() // by site
  const edges = new Map() // by the names of two sites
  let pick = null // id of the node that is looked at

  function choose(id) {
    pick = pick === id ? null : id
    draw()
  }

  function update() {
    const sites = group()
    const flat = sites.length <= widest && map.clientWidth >= 700
    attr(map, 'data-flat', String(flat))
    attr(map, 'data-many', String(sites.length > 4 || Math.max(...sites.map(([, nodes]) => nodes.length)) > 4))
    sites.forEach(([site, nodes], i) => {
      const place = entry(places, site, () => new Place(map, site, choose))
      place.update(model.lists.sites.get(site), nodes, pick)
      place.put(flat ? spot(i, sites.length) : null)
    })
    prune(places, site => sites.some(([name]) => name === site))
    const chosen = model.lists.nodes.get(pick)
    picked.update(chosen)
    drawEdges(flat ? sites : [], chosen)
    times.update(sites)
  }

  function drawEdges(sites, chosen) {
    const wanted = new Set()
    sites.forEach(([a, as], i) => sites.slice(i + 1).forEach(([b, bs], k) => {
      const key = a + '\n' + b
      wanted.add(key)
      entry(edges, key, () => new Edge(lines, labels)).update(spot(i, sites.length), spot(i + 1 + k, sites.length), as, bs, chosen)
    }))
    prune(edges, key => wanted.has(key))
  }

  const element = h('div', {class: 'view'},
    h('div', {class: 'tools'}, h('h2', {text: 'Mesh'}), h('p', {class: 'found', text: 'Times there and back between sites; for each node the rooms that it leads, and its places in use of those it holds. Choose a node for its own times.'})),
    map, picked.element, times.element)
  addEventListener('resize', draw)
  return {name: 'mesh', title: 'Mesh', element, update, close: () => removeEventListener('resize', draw)}
}

// entry returns what a map has under a key, which is made if it is not there.
function entry(map, key, make) {
  if (!map.has(key)) map.set(key, make())
  return map.get(key)
}

// prune takes away what is not to be kept.
function prune(map, keep) {
  for (const [key, value] of map) {
    if (keep(key)) continue
    value.remove()
    map.delete(key)
  }
}

// Place is a site with its nodes.
class Place {
  constructor(map, site, choose) {
    this.choose = choose
    this.state = badge({shape: 'bad', label: '', level: 'bad'})
    this.sub = h('p')
    this.list = h('ul')
    this.nodes = new Map() // NodeButton by id
    this.element = h('section', {class: 'place', 'aria-label': `Site ${site}`}, h('header', {}, h('h3', {text: site}), this.state), this.sub, this.list)
    map.append(this.element)
  }

  update(site, nodes, pick) {
    const bad = site?.silent_since ? {label: 'Silent', level: 'bad', shape: 'cross'} : site?.frozen ? {label: 'Frozen', level: 'warn', shape: 'pause'} : null
    show(this.state, bad !== null)
    if (bad) setBadge(this.state, bad)
    attr(this.element, 'data-level', bad?.level)
    const inside = between(nodes, nodes)
    text(this.sub, `${plural(nodes.length, 'node')}${inside == null ? '' : ` · ${rtt(inside)} inside`}`)
    for (const n of nodes) entry(this.nodes, n.node, () => new NodeButton(() => this.choose(n.node))).update(n, pick)
    prune(this.nodes, id => nodes.some(n => n.node === id))
    order(this.list, nodes.map(n => this.nodes.get(n.node).element))
  }

  // put puts it on the map, at a spot in percent; null is wherever it flows to.
  put(spot) {
    style(this.element, 'left', spot ? `${spot[0]}%` : '')
    style(this.element, 'top', spot ? `${spot[1]}%` : '')
  }

  remove() {
    this.element.remove()
  }
}

// NodeButton is a node on the map, to be chosen.
class NodeButton {
  constructor(choose) {
    this.sign = icon('open')
    this.label = h('b')
    this.state = h('span', {class: 'unseen'})
    this.note = h('small')
    this.bar = h('span', {class: 'bar', 'aria-hidden': 'true'}, h('span'))
    this.button = h('button', {'aria-pressed': 'false', on: {click: choose}}, this.sign, this.label, this.state, this.note, this.bar)
    this.element = h('li', {}, this.button)
  }

  update(n, pick) {
    const state = nodeState(n), held = n.rights.held.places
    setIcon(this.sign, state.shape)
    attr(this.button, 'data-level', state.level)
    attr(this.button, 'aria-pressed', String(pick === n.node))
    text(this.label, name(n, n.node))
    text(this.state, ', ' + state.label)
    text(this.note, state.level === 'ok' ? `${count(n.leads.length)} led · ${compact(n.rights.in_use)}/${compact(held)}` : state.label)
    style(this.bar.firstChild, '--part', held > 0 ? Math.min(1, n.rights.in_use / held).toFixed(2) : 0)
  }

  remove() {
    this.element.remove()
  }
}

// Edge is the line between two sites, with the time that a message takes.
class Edge {
  constructor(lines, labels) {
    this.line = s('line')
    this.label = h('span')
    lines.append(this.line)
    labels.append(this.label)
  }

  // update draws it from one spot to another. The time is that between the nodes of both,
  // or of the chosen one where it is among them.
  update([x1, y1], [x2, y2], as, bs, chosen) {
    const faint = chosen && !as.includes(chosen) && !bs.includes(chosen)
    const time = between(as.includes(chosen) ? [chosen] : as, bs.includes(chosen) ? [chosen] : bs)
    for (const [name, value] of Object.entries({x1, y1, x2, y2})) attr(this.line, name, value + '%')
    attr(this.line, 'data-cut', time == null ? 'true' : null)
    for (const part of [this.line, this.label]) attr(part, 'data-faint', faint ? 'true' : null)
    style(this.line, 'stroke-width', time == null ? 1.5 : Math.max(1, 3 - time / 1e8).toFixed(1))
    // Nearer to one end, since lines cross in the middle; but not under a site.
    const at = Math.abs(x2 - x1) < 25 ? 0.5 : 0.36
    style(this.label, 'left', `${x1 + (x2 - x1) * at}%`)
    style(this.label, 'top', `${y1 + (y2 - y1) * at}%`)
    text(this.label, time == null ? 'cut off' : rtt(time))
  }

  remove() {
    this.line.remove()
    this.label.remove()
  }
}

// group returns the nodes by site, both in the order of their names.
function group() {
  const sites = new Map()
  for (const site of model.lists.sites.keys()) sites.set(site, [])
  for (const n of model.lists.nodes.values()) {
    if (!sites.has(n.site)) sites.set(n.site, [])
    sites.get(n.site).push(n)
  }
  for (const nodes of sites.values()) nodes.sort((a, b) => name(a, a.node).localeCompare(name(b, b.node), 'en', {numeric: true}))
  return [...sites].sort(([a], [b]) => a.localeCompare(b))
}

// spot returns where a site is, in percent of the map: on an ellipse, in the order of
// names, so that the same mesh is the same map every time.
function spot(i, n) {
  if (n === 1) return [50, 50]
  const angle = 2 * Math.PI * (i + 0.5) / n - Math.PI / 2
  return [50 + 36 * Math.sin(angle), 50 - 35 * Math.cos(angle)].map(v => Math.round(v * 10) / 10)
}

// between returns the median time of all pairs that know one, null for none: between
// nodes that are alive, since others remember what was.
function between(as, bs) {
  const alive = n => n.state === 'alive'
  return middle(as.filter(alive).flatMap(a => bs.filter(alive).flatMap(b => [a.rtts_ns[b.node], b.rtts_ns[a.node]])))
}

function pickedPanel() {
  const title = h('h3'), state = badge({shape: 'open', label: '', level: 'ok'}), facts = h('dl', {class: 'facts'})
  const element = h('section', {class: 'panel picked', 'aria-live': 'polite', hidden: true}, h('header', {}, title, state), facts)
  const rows = ['Address', 'Version', 'Rights held', 'Rights in use', 'Leads', 'Nearest', 'Farthest'].map(label => {
    const dd = h('dd')
    facts.append(h('div', {}, h('dt', {text: label}), dd))
    return dd
  })
  function update(n) {
    show(element, n !== undefined)
    if (!n) return
    text(title, `${name(n, n.node)} in ${n.site}`)
    setBadge(state, nodeState(n))
    const times = Object.entries(n.rtts_ns).sort((a, b) => a[1] - b[1])
    const far = ([id, time] = []) => id ? `${name(model.lists.nodes.get(id), id)}, ${rtt(time)}` : '–'
    const rooms = n.leads.slice(0, 6).map(id => name(model.lists.rooms.get(id), id)).join(', ')
    const values = [n.address, n.version, `${count(n.rights.held.places)} places, ${count(n.rights.held.per_minute)} per minute`,
      count(n.rights.in_use), n.leads.length ? `${rooms}${n.leads.length > 6 ? ` and ${count(n.leads.length - 6)} more` : ''}` : 'no room',
      far(times[0]), far(times.at(-1))]
    rows.forEach((dd, i) => text(dd, values[i] || '–'))
  }
  return {element, update}
}

// timesTable says in rows and columns what the map says with lines.
function timesTable() {
  const table = h('table')
  let shown = ''
  function update(sites) {
    const names = sites.map(([site]) => site)
    if (names.join('\n') !== shown) {
      shown = names.join('\n')
      table.replaceChildren(h('caption', {text: 'Median time between sites, there and back'}),
        h('thead', {}, h('tr', {}, h('td'), ...names.map(n => h('th', {scope: 'col', text: n})))),
        h('tbody', {}, ...names.map(n => h('tr', {}, h('th', {scope: 'row', text: n}), ...names.map(() => h('td'))))))
    }
    sites.forEach(([, as], i) => sites.forEach(([, bs], k) => {
      const time = between(as, bs)
      text(table.tBodies[0].rows[i].cells[k + 1], time == null ? (i === k ? '–' : 'cut off') : rtt(time))
    }))
  }
  return {element: h('div', {class: 'panel times', tabindex: 0, role: 'region', 'aria-label': 'Times between sites'}, table), update}
}
