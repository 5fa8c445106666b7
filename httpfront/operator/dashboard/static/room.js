// One room: how it is and was, its queue, and what can be changed.

import {ask, follow} from './api.js'
import {draw, mesh} from './app.js'
import {charts} from './chart.js'
import {attr, badge, h, order, setBadge, show, style, text} from './dom.js'
import {settings} from './edit.js'
import {events} from './events.js'
import {count, name, route} from './format.js'
import {roomState} from './health.js'
import {Model} from './model.js'
import {wait} from './overview.js'
import {queue} from './queue.js'

export function room(id) {
  const detail = new Model({})
  const closing = new AbortController()
  const title = h('h2'), state = badge({shape: 'open', label: '', level: 'ok'}), where = h('p', {class: 'where'})
  const gone = h('p', {class: 'empty', text: 'There is no such room, or no more.', hidden: true})
  const tiles = tileRow()
  const form = settings(id)
  const parts = {charts: charts(id, (path) => ask('GET', path)), queue: queue(), sites: siteTable(), events: events(id)}
  const content = h('div', {class: 'content'}, tiles.element,
    h('div', {class: 'columns'},
      h('div', {class: 'wide'}, parts.charts.element, parts.queue.element, parts.sites.element),
      h('div', {class: 'narrow'}, form.element, parts.events.element)))
  const element = h('div', {class: 'view room'},
    h('nav', {class: 'back', 'aria-label': 'Back'}, h('a', {href: '#/', text: '← All rooms'})),
    h('header', {class: 'tools'}, title, state, where), gone, content)

  follow(`rooms/${encodeURIComponent(id)}/watch`, closing.signal, (event, data) => {
    if (event === 'snapshot') detail.snapshot(data)
    else if (event === 'delta') detail.delta(data)
    draw()
  })

  const view = {name: 'overview', title: 'Room', element, update, close}

  function update() {
    const r = mesh.lists.rooms.get(id)
    show(gone, !r)
    show(content, !!r)
    show(state, !!r)
    text(title, r?.name ?? 'Unknown room')
    if (!r) return
    view.title = r.name
    setBadge(state, roomState(r))
    text(where, [r.zone, r.routes.map(route).join(', '), r.queueing_method, r.policy].filter(Boolean).join(' · '))
    tiles.update(r)
    parts.charts.update(r, Date.parse(mesh.fields.time) / 1000)
    if (!detail.fields.time) return
    form.update(r, detail.fields.settings)
    parts.queue.update(detail.fields)
    parts.sites.update(detail.fields.sites)
    parts.events.update(detail.fields.events)
  }

  function close() {
    closing.abort()
    parts.charts.close()
  }

  return view
}

function tileRow() {
  const labels = ['Active', 'Waiting', 'Admitted per minute', 'Wait from now on', 'Rights']
  const all = labels.map(label => {
    const dd = h('dd', {}, h('b'), h('small')), bar = h('span', {class: 'bar', 'aria-hidden': 'true', hidden: true}, h('span'))
    return {element: h('div', {}, h('dt', {text: label}), dd, bar), dd, bar}
  })
  function set(i, value, note, part) {
    text(all[i].dd.firstChild, value)
    text(all[i].dd.lastChild, note)
    show(all[i].bar, part != null)
    if (part == null) return
    style(all[i].bar.firstChild, '--part', Math.min(1, part).toFixed(3))
    attr(all[i].bar, 'data-over', part > 1 ? 'true' : null)
  }
  return {
    element: h('dl', {class: 'tiles'}, ...all.map(t => t.element)),
    update(r) {
      set(0, count(r.active), `of ${count(r.total_active_users)}`, r.active / r.total_active_users)
      set(1, count(r.waiting), r.waiting === 0 ? 'nobody' : r.queueing_method)
      set(2, count(r.admitted_per_minute), `of ${count(r.new_users_per_minute)}`, r.admitted_per_minute / r.new_users_per_minute)
      set(3, wait(r), waitNote(r))
      const rights = r.rights
      show(all[4].element, !!rights)
      if (rights) set(4, count(rights.free.places), `free of ${count(rights.minted.places)} minted` + (rights.borrowed ? `, ${count(rights.borrowed)} borrowed` : ''))
    },
  }
}

function siteTable() {
  const body = h('tbody'), rows = new Map()
  const element = h('section', {class: 'panel', 'aria-labelledby': 'sites-title'}, h('h3', {id: 'sites-title', text: 'Sites'}),
    h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Figures of sites'}, h('table', {},
      h('thead', {}, h('tr', {}, ...['Site', 'Active', 'Waiting', 'Counter', 'Places', 'Free'].map((t, i) => h('th', {scope: 'col', class: i && i !== 3 ? 'number' : null, text: t})))), body)))
  function update(sites) {
    for (const site of sites) {
      if (!rows.has(site.site)) rows.set(site.site, h('tr', {}, h('th', {scope: 'row'}), ...['number', 'number', '', 'number', 'number'].map(c => h('td', {class: c}))))
      const values = [site.site + (site.frozen ? ' (frozen)' : ''), count(site.active), count(site.waiting),
        name(mesh.lists.nodes.get(site.site_counter), site.site_counter), count(site.rights?.held.places), count(site.rights?.free.places)]
      values.forEach((v, i) => text(rows.get(site.site).cells[i], v))
    }
    order(body, sites.map(site => rows.get(site.site)))
  }
  return {element, update}
}

// waitNote says what the wait of somebody who comes now means.
function waitNote(r) {
  if (r.dry_run) return 'holds nobody back'
  if (r.queue_all || r.queueing_method === 'reject') return 'nobody is let in'
  if (r.wait_seconds === 0) return 'comes in at once'
  return r.wait_seconds > 0 ? 'estimated' : 'nobody can tell'
}
