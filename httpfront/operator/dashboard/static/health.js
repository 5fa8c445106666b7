// What is wrong, and where: worked out from what the page knows, in one place.

import {count, name, plural, span} from './format.js'

const stuckAfter = 60000 // ms in which nobody gets in though there is room
const longWait = 3600 // s

const states = {
  unminted: {label: 'Not minted', level: 'bad', shape: 'bad', rank: 9},
  stuck: {label: 'Stuck', level: 'bad', shape: 'bad', rank: 8},
  queueAll: {label: 'Queue all', level: 'warn', shape: 'hold', rank: 7},
  suspended: {label: 'Suspended', level: 'note', shape: 'pause', rank: 6},
  dryRun: {label: 'Dry run', level: 'note', shape: 'ring', rank: 6},
  reject: {label: 'Rejecting', level: 'note', shape: 'cross', rank: 5},
  prequeue: {label: 'Pre-queue', level: 'note', shape: 'clock', rank: 4},
  queueing: {label: 'Queueing', level: 'busy', shape: 'queueing', rank: 3},
  event: {label: 'Event', level: 'ok', shape: 'clock', rank: 2},
  passthrough: {label: 'Counting', level: 'ok', shape: 'ring', rank: 1},
  open: {label: 'Open', level: 'ok', shape: 'open', rank: 0},
}

const stuckSince = new Map() // by room: since when nobody gets in

// roomState returns the one state that says most about a room.
export function roomState(r) {
  if (r.policy === 'escrow' && r.rights && !r.rights.minter && !r.rights.minted?.places) return states.unminted
  if (r.suspended) return states.suspended
  if (r.dry_run) return states.dryRun
  if (r.event?.prequeueing) return states.prequeue
  if (r.queue_all) return states.queueAll
  if (r.queueing_method === 'reject') return states.reject
  if (isStuck(r)) return states.stuck
  if (r.waiting > 0) return states.queueing
  if (r.event?.active) return states.event
  if (r.queueing_method === 'passthrough') return states.passthrough
  return states.open
}

// watch has to be called with every change, since a moment in which nobody gets in is
// nothing yet.
export function watch(mesh, now) {
  for (const [id, r] of mesh.lists.rooms) {
    if (r.waiting > 0 && r.admitted_per_minute === 0 && r.active < r.total_active_users) {
      if (!stuckSince.has(id)) stuckSince.set(id, now)
    } else stuckSince.delete(id)
  }
  for (const id of stuckSince.keys()) if (!mesh.lists.rooms.has(id)) stuckSince.delete(id)
}

function isStuck(r) {
  return Date.now() - (stuckSince.get(r.id) ?? Infinity) >= stuckAfter
}

const nodeStates = {
  failed: {label: 'Failed', level: 'bad', shape: 'cross', rank: 5},
  store: {label: 'No tickets: disk', level: 'bad', shape: 'bad', rank: 4},
  clock: {label: 'No tickets: clock', level: 'bad', shape: 'bad', rank: 4},
  unready: {label: 'Not ready', level: 'warn', shape: 'half', rank: 3},
  leaving: {label: 'Leaving', level: 'note', shape: 'half', rank: 2},
  left: {label: 'Left', level: 'note', shape: 'ring', rank: 1},
  alive: {label: 'Alive', level: 'ok', shape: 'open', rank: 0},
}

export function nodeState(n) {
  if (n.state === 'failed') return nodeStates.failed
  if (n.state === 'left') return nodeStates.left
  if (n.store !== 'ok') return nodeStates.store
  if (n.clock !== 'ok') return nodeStates.clock
  if (n.leaving) return nodeStates.leaving
  if (!n.ready) return nodeStates.unready
  return nodeStates.alive
}

const limitStates = {
  leftOut: {label: 'Left out', level: 'bad', shape: 'bad', rank: 4},
  limiting: {label: 'Limiting', level: 'busy', shape: 'hold', rank: 3},
  logging: {label: 'Logging', level: 'busy', shape: 'ring', rank: 2},
  quiet: {label: 'Quiet', level: 'ok', shape: 'open', rank: 1},
  disabled: {label: 'Disabled', level: 'note', shape: 'pause', rank: 0},
}

// limitState returns what a rate limit is doing.
export function limitState(l) {
  if (l.state === 'left out') return limitStates.leftOut
  if (l.state === 'disabled') return limitStates.disabled
  if (l.limited.most === 0) return limitStates.quiet
  return l.action === 'log' ? limitStates.logging : limitStates.limiting
}

// forgets reports whether a node has too little memory for rate limits.
export const forgets = n => n.state === 'alive' && n.limits?.replaced_lately > 0

const roomPlace = r => ({label: r.name, href: '#/rooms/' + encodeURIComponent(r.id)})
const nodePlace = n => ({label: nodeName(n), href: '#/nodes'})

// nodeName says the site with the name, where that does not.
function nodeName(n) {
  const own = name(n, n.node)
  return own.startsWith(n.site) ? own : `${own} in ${n.site}`
}

const refusedPlace = x => x.limit ? {label: x.limit, href: '#/limits'} : ({label: x.event ? `${x.event} of ${x.name}` : x.name, href: x.event ? '#/rooms/' + encodeURIComponent(x.room) : '#/'})
const sitePlace = site => ({label: site.site, href: '#/mesh'})

// Each kind is said in one line, however many places there are.
const siteKinds = [
  {level: 'bad', is: site => site.silent_since, one: 'A site is silent', many: 'sites are silent', detail: site => `for ${span((Date.now() - Date.parse(site.silent_since)) / 1000)}`},
]
const nodeKinds = [
  {level: 'bad', is: n => n.state === 'failed', one: 'A node does not answer', many: 'nodes do not answer'},
  {level: 'bad', is: n => nodeState(n) === nodeStates.store, one: 'A node lets nobody in: its disk', many: 'nodes let nobody in: their disks', detail: n => n.store},
  {level: 'bad', is: n => nodeState(n) === nodeStates.clock, one: 'A node lets nobody in: its clock is off', many: 'nodes let nobody in: their clocks are off'},
  {level: 'warn', is: n => nodeState(n) === nodeStates.unready, one: 'A node is not ready', many: 'nodes are not ready', detail: n => n.reason},
  {level: 'note', is: n => nodeState(n) === nodeStates.leaving, one: 'node is leaving', many: 'nodes are leaving'},
]

// Origins of all nodes. A site is down at a node where none of its origins is in: nobody new is let in there.
const originKinds = [
  {level: 'bad', is: o => o.site_down, one: 'A site is down: no origin is healthy', many: 'origins are out, and with them their sites', detail: o => failureText(o)},
  {level: 'warn', is: o => !o.site_down && o.state !== 'in', one: 'An origin is out', many: 'origins are out', detail: o => failureText(o)},
  {level: 'warn', is: o => o.state === 'in' && o.error_rate * o.recent_requests > 2.5 && o.error_rate >= 0.1, one: 'An origin fails', many: 'origins fail', detail: o => failureText(o)},
  {level: 'warn', is: o => o.state === 'in' && o.recent_requests >= 3 && o.p50_ns >= 5e9, one: 'An origin is slow', many: 'origins are slow', detail: o => `p50 ${span(o.p50_ns / 1e9)}`},
]
const originPlace = o => ({label: `${o.url}${o.room ? ` of ${o.room}` : ''} at ${o.node}`, href: '#/nodes'})
const failureText = o => o.last_failure?.text ?? o.state

// Nodes whose capacity nobody can use; each says in words how much that is, and what to do.
const downKinds = [
  {level: 'bad', is: d => d.state === 'down', one: 'A node is down, and nobody can use its capacity', many: 'nodes are down, and nobody can use their capacity', detail: d => withoutName(d)},
  {level: 'warn', is: d => d.state !== 'down', one: 'The capacity of a dead node is being recovered', many: 'dead nodes have their capacity recovered', detail: d => withoutName(d)},
]
const downPlace = d => ({label: d.name || d.node.slice(0, 8), href: '#/nodes'})

// downBrief says the same in a few words.
export function downBrief(d) {
  const one = d.rooms.length === 1 ? d.rooms[0] : null
  const what = one ? `${one.approximate ? 'about ' : ''}${count(one.capacity.places)} of ${count(one.minted.places)}` : `capacity of ${plural(d.rooms.length, 'room')}`
  return d.state === 'down' ? `${what} unusable` : `${what} being recovered`
}

// withoutName returns the text about a node that is down, to stand behind its name.
function withoutName(d) {
  const own = d.name || d.node
  return d.message.startsWith(`${own} is down: `) ? d.message.slice(own.length + 10) : d.message
}

const memoryKinds = [
  {level: 'warn', is: forgets, one: 'A node has too little memory for rate limits', many: 'nodes have too little memory for rate limits', detail: n => `${plural(n.limits.replaced_lately, 'client')} forgotten too early in 5 min`},
]
const roomKinds = [
  {level: 'bad', is: r => roomState(r) === states.unminted, one: 'The capacity of a room was never minted: nobody is let in', many: 'rooms have capacity that was never minted: nobody is let in'},
  {level: 'bad', is: r => roomState(r) === states.stuck, one: 'Nobody gets in though there is room', many: 'rooms let nobody in though there is room'},
  {level: 'warn', is: r => roomState(r) === states.queueAll, one: 'A room holds everybody: queue all is on', many: 'rooms hold everybody: queue all is on', detail: r => `${count(r.waiting)} wait`},
  {level: 'warn', is: r => r.active > 1.02 * Math.max(r.total_active_users, r.rights?.minted?.places ?? 0), one: 'A room counts more visitors than its limit', many: 'rooms count more visitors than their limits', detail: r => `${count(r.active)} of ${count(r.total_active_users)}`},
  {level: 'warn', is: r => r.rights?.borrowed > 0, one: 'A room has borrowed sessions', many: 'rooms have borrowed sessions', detail: r => count(r.rights.borrowed)},
  {level: 'warn', is: r => r.wait_seconds > longWait && !r.queue_all, one: 'A wait is longer than an hour', many: 'rooms have waits of more than an hour', detail: r => span(r.wait_seconds)},
  {level: 'note', is: r => roomState(r) === states.suspended, one: 'room is suspended', many: 'rooms are suspended'},
  {level: 'note', is: r => roomState(r) === states.dryRun, one: 'room holds nobody back: it is a dry run', many: 'rooms hold nobody back: they are dry runs'},
  {level: 'note', is: r => roomState(r) === states.prequeue, one: 'room is in a pre-queue', many: 'rooms are in a pre-queue'},
  {level: 'note', is: r => roomState(r) === states.reject, one: 'room rejects everybody', many: 'rooms reject everybody'},
  {level: 'note', is: r => r.rights?.minted?.places > r.total_active_users, one: 'room is following a lower limit', many: 'rooms are following a lower limit'},
]

const refusedKinds = [
  {level: 'bad', is: x => x.event, one: 'An event is left out: it cannot be beside the rest', many: 'events are left out: they cannot be beside the rest', detail: x => x.reason},
  {level: 'bad', is: x => x.limit, one: 'A rate limit is left out: it cannot be beside the rest', many: 'rate limits are left out: they cannot be beside the rest', detail: x => x.reason},
  {level: 'bad', is: x => !x.event && !x.limit, one: 'A room, or a part of it, is left out: it cannot be beside the rest', many: 'rooms, or parts of them, are left out: they cannot be beside the rest', detail: x => x.reason},
]

const ranks = {bad: 0, warn: 1, note: 2}

// findings returns what there is to know, worst first: {level, what, places, more}, with
// at most three places and how many more there are.
export function findings(mesh) {
  const found = []
  const look = (kinds, list, place) => {
    const values = [...list.values()]
    for (const kind of kinds) {
      const is = values.filter(kind.is)
      if (is.length === 0) continue
      const single = is.length === 1
      const what = single ? (kind.level === 'note' ? '1 ' : '') + kind.one : `${count(is.length)} ${kind.many}`
      const places = is.slice(0, 3).map(v => ({...place(v), detail: kind.detail?.(v)}))
      found.push({level: kind.level, what, places, more: is.length - places.length})
    }
  }
  look(siteKinds, mesh.lists.sites, sitePlace)
  const down = new Map((mesh.fields.down ?? []).map(d => [d.node, d]))
  look(downKinds, down, downPlace)
  look(nodeKinds, new Map([...mesh.lists.nodes].filter(([, n]) => n.state !== 'failed' || !down.has(n.node))), nodePlace)
  const alive = [...mesh.lists.nodes.values()].filter(n => n.state === 'alive')
  look(originKinds, new Map(alive.flatMap(n => (n.origins ?? []).map(o => ({...o, node: name(n, n.node)}))).entries()), originPlace)
  look(roomKinds, mesh.lists.rooms, roomPlace)
  look(memoryKinds, mesh.lists.nodes, n => ({...nodePlace(n), href: '#/limits'}))
  look(refusedKinds, new Map((mesh.fields.refused ?? []).entries()), refusedPlace)
  const versions = new Set([...mesh.lists.nodes.values()].filter(n => n.state === 'alive').map(n => n.version).filter(v => v))
  if (versions.size > 1) found.push({level: 'note', what: `${versions.size} versions run`, places: [...versions].slice(0, 3).map(v => ({label: v, href: '#/nodes'})), more: Math.max(0, versions.size - 3)})
  return found.sort((a, b) => ranks[a.level] - ranks[b.level])
}
