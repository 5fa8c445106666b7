// The page: which view is shown, how all is, and whether what is shown is true.

import {connect, disconnect, draw, link, mesh, onDraw} from './app.js'
import {attr, h, icon, say, setIcon, show, text} from './dom.js'
import {clock, compact, count, name, plural, span} from './format.js'
import {findings, watch} from './health.js'
import {limits} from './limits.js'
import {mesh as meshView} from './mesh.js'
import {nodes} from './nodes.js'
import {overview} from './overview.js'
import {room} from './room.js'
import {signIn} from './signin.js'

const main = document.getElementById('main')
const health = document.getElementById('health')
const live = document.getElementById('live')
const liveText = document.getElementById('live-text')

const views = {'': overview, limits, mesh: meshView, nodes, rooms: room}
let shown = null // the view: {title, element, update(), close()}

function go() {
  const [first = '', id = ''] = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent)
  const view = views[first] ?? overview
  const again = shown !== null
  shown?.close?.()
  shown = view(id)
  main.replaceChildren(shown.element)
  for (const a of document.querySelectorAll('nav a')) {
    attr(a, 'aria-current', a.dataset.view === shown.name ? 'page' : null)
  }
  if (again) {
    scrollTo(0, 0)
    main.focus({preventScroll: true})
  }
  draw()
}

// Health stands over every view: whether all is well, and if not, what and where.
const figure = label => h('div', {}, h('dt', {text: label}), h('dd'))
const parts = {
  icon: icon('ok'), head: h('h1'), sub: h('p', {class: 'sub'}), list: h('ul', {id: 'findings'}),
  all: h('button', {class: 'all', 'aria-controls': 'findings', on: {click() { opened = !opened; draw() }}}),
  figures: ['Active', 'Waiting', 'Admitted per minute'].map(figure),
}
health.append(
  h('div', {class: 'verdict'}, parts.icon, h('div', {}, parts.head, parts.sub)),
  h('dl', {class: 'totals'}, ...parts.figures), parts.list, parts.all)
let said = null
let listed = ''
let opened = false // whether everything is listed

// few is how many findings are listed at first: where rooms are listed there is room for
// more than above a view that somebody went to.
const few = () => shown?.title === 'Rooms' && innerWidth > 640 ? 6 : 2

function drawHealth() {
  if (!mesh.fields.time) return
  watch(mesh, Date.now())
  show(health, true)
  const found = findings(mesh)
  const wrong = found.filter(f => f.level !== 'note')
  const level = link.state === 'lost' ? 'warn' : wrong[0]?.level ?? 'ok'
  attr(health, 'data-level', level)
  setIcon(parts.icon, level)
  const verdict = link.state === 'lost' ? 'This page is cut off' : wrong.length === 0 ? 'All is well' : headline(wrong[0])
  text(parts.head, verdict)
  const {rooms, nodes, sites} = mesh.lists
  text(parts.sub, link.state === 'lost'
    ? `Figures are from ${clock(mesh.fields.time)}. Trying again.`
    : (wrong.length > 1 ? `${plural(wrong.length - 1, 'more thing')} to look at · ` : '') + `${plural(rooms.size, 'room')} on ${plural(nodes.size, 'node')} in ${plural(sites.size, 'site')}`)
  const totals = [0, 0, 0]
  for (const r of rooms.values()) {
    totals[0] += r.active
    totals[1] += r.waiting
    totals[2] += r.admitted_per_minute
  }
  parts.figures.forEach((f, i) => {
    text(f.lastChild, innerWidth < 500 ? compact(totals[i]) : count(totals[i]))
  })
  const most = opened ? found.length : found.length <= few() + 1 ? few() + 1 : few()
  show(parts.all, opened || found.length > most)
  text(parts.all, opened ? 'Show less' : `Show all ${count(found.length)}`)
  attr(parts.all, 'aria-expanded', String(opened))
  drawFindings(found.slice(0, most))
  // Heard only when what is wrong is other than before, and not with every figure.
  const spoken = [verdict, ...wrong.map(f => `${f.what}: ${f.places.map(p => p.label).join(', ')}`)].join('. ')
  if (spoken !== said) say(said = spoken)
  document.title = (level === 'ok' ? '' : level === 'bad' ? '✕ ' : '! ') + (shown?.title ?? 'Rooms') + ' – ropeline'
}

// headline says the worst in a few words: what, and where.
function headline({what, places, more}) {
  return places.length === 1 && !more ? `${what}: ${places[0].label}` : what
}

// drawFindings makes lines anew only when they are about other things: links stay while
// figures change, for who is about to follow one.
function drawFindings(found) {
  const about = JSON.stringify(found.map(f => [f.level, f.places.map(p => [p.label, p.href])]))
  if (about !== listed) {
    listed = about
    parts.list.replaceChildren(...found.map(finding))
  }
  found.forEach((f, i) => {
    const line = parts.list.children[i]
    text(line.querySelector('b'), f.what)
    text(line.querySelector('.rest'), f.more > 0 ? ` and ${count(f.more)} more` : '')
    line.querySelectorAll('.detail').forEach((detail, k) => text(detail, f.places[k].detail ? ` (${f.places[k].detail})` : ''))
  })
}

function finding(f) {
  const places = f.places.flatMap((p, i) => [i ? ', ' : ' ', h('a', {href: p.href, text: p.label}), h('span', {class: 'detail'})])
  return h('li', {'data-level': f.level}, icon(f.level), h('span', {}, h('b'), ...places, h('span', {class: 'rest'})))
}

function drawLink() {
  const silent = (Date.now() - link.heard) / 1000
  attr(live, 'data-state', link.state)
  const node = mesh.lists.nodes.get(mesh.fields.node)
  text(liveText, {
    live: `Live from ${name(node, mesh.fields.node)}`,
    connecting: 'Connecting',
    revoked: 'Signed out',
    lost: link.heard ? `Not heard for ${span(silent)}` : 'No answer yet',
  }[link.state])
}

function start() {
  connect(event => {
    if (event === 'revoked') signIn(() => { go(); start() }) // views have streams of their own
  })
}

onDraw(() => {
  drawLink()
  drawHealth()
  if (mesh.fields.time) shown?.update()
})
setInterval(() => link.state === 'lost' && draw(), 1000)
addEventListener('hashchange', go)
// A browser may keep a page that was left, for who goes back to it. Its streams would take
// connections to the node that the next page needs, of which there are few.
addEventListener('pagehide', () => {
  shown?.close?.()
  disconnect()
})
addEventListener('pageshow', e => e.persisted && location.reload())
document.querySelector('.skip').addEventListener('click', e => {
  e.preventDefault() // the address says which view is shown
  main.focus()
})
go()
start()
