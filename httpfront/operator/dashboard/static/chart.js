// How a room was over time: two charts, and the same figures as a table.

import {count, clock, minute} from './format.js'
import {attr, h, s, show, text} from './dom.js'

const ranges = [
  {label: '15 min', seconds: 900, step: 5},
  {label: '1 h', seconds: 3600, step: 15},
  {label: '24 h', seconds: 86400, step: 300},
]

// What is drawn. The first is a line over an area, limits are dashed.
const plots = [
  {
    title: 'Visitors', series: [
      {field: 'active', past: 'active_users_avg', label: 'Active', color: '--chart-a', fill: true},
      {field: 'waiting', past: 'waiting_users_avg', label: 'Waiting', color: '--chart-b'},
      {field: 'total_active_users', label: 'Limit of active', color: '--chart-limit', dash: [6, 5]},
    ],
  },
  {
    title: 'Admitted per minute', series: [
      {field: 'admitted_per_minute', past: 'admitted_users_avg_per_minute', label: 'Admitted per minute', color: '--chart-a', fill: true},
      {field: 'new_users_per_minute', label: 'Limit of new visitors', color: '--chart-limit', dash: [6, 5]},
    ],
  },
]
const shown = plots.flatMap(p => p.series)
const fields = shown.map(series => series.field)

export function charts(id, get) {
  let range = ranges[0], rows = null, latest = 0, closed = false, drawnAt = 0
  const buttons = ranges.map(r => h('button', {'aria-pressed': String(r === range), text: r.label, on: {click: () => choose(r)}}))
  const wrong = h('p', {class: 'wrong', hidden: true})
  const drawn = plots.map(plot)
  const table = historyTable()
  const element = h('section', {class: 'panel charts', 'aria-labelledby': 'charts-title'},
    h('header', {}, h('h3', {id: 'charts-title', text: 'Over time'}), h('div', {class: 'chips', role: 'group', 'aria-label': 'Span'}, ...buttons)),
    wrong, ...drawn.map(d => d.element), table.element)
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const resized = new ResizeObserver(() => drawn.forEach(d => d.resize()))
  resized.observe(element)
  const recolor = () => { for (const d of drawn) d.drop(); redraw() }
  dark.addEventListener('change', recolor)

  async function choose(r) {
    range = r
    ranges.forEach((other, i) => attr(buttons[i], 'aria-pressed', String(other === r)))
    rows = null
    await load()
  }

  async function load() {
    const wanted = range, to = Math.floor(latest / wanted.step) * wanted.step
    const query = new URLSearchParams({
      from: new Date((to - wanted.seconds) * 1000).toISOString(), to: new Date(to * 1000).toISOString(), step: Math.max(60, wanted.step) + 's',
    })
    try {
      const {points} = await get(`rooms/${encodeURIComponent(id)}/analytics?${query}`)
      if (closed || wanted !== range) return
      rows = new Rows(points, wanted)
      show(wrong, false)
      drawnAt = 0
      redraw()
    } catch (err) {
      if (closed || wanted !== range) return
      rows = new Rows([], wanted)
      text(wrong, `What was before cannot be shown: ${err.message}`)
      show(wrong, true)
    }
  }

  function redraw() {
    if (!rows) return
    drawn.forEach(d => d.draw(rows))
    if (table.element.open) table.update(rows, range)
  }

  // update takes in how the room is now, by the node's clock. A chart of hours is not
  // drawn every second.
  function update(room, now) {
    const first = latest === 0
    latest = now
    if (first) load()
    if (!rows) return
    rows.now(now, room)
    if (now - drawnAt < range.step / 5) return
    drawnAt = now
    redraw()
  }

  table.element.addEventListener('toggle', redraw)
  return {
    element, update,
    close() {
      closed = true
      resized.disconnect()
      dark.removeEventListener('change', recolor)
      for (const d of drawn) d.drop()
    },
  }
}

// Rows are the figures of all charts: times, and for each field as many values. The last
// is of now, and gives way to the next until its step is over. What was before is known by the
// minute; where steps are shorter several have the same figures.
class Rows {
  constructor(points, {seconds, step}) {
    Object.assign(this, {seconds, step, moving: false, times: []})
    this.values = Object.fromEntries(fields.map(f => [f, []]))
    for (const point of points) {
      const begin = Date.parse(point.time) / 1000
      for (let t = begin; t < begin + Math.max(60, step); t += step) {
        this.times.push(t)
        for (const {field, past} of shown) this.values[field].push(point[past ?? field])
      }
    }
  }

  now(t, room) {
    const {times} = this
    if (this.moving) {
      times.pop()
      for (const f of fields) this.values[f].pop()
    }
    this.moving = times.length > 0 && t - times.at(-1) < this.step
    times.push(t)
    for (const f of fields) this.values[f].push(room[f])
    while (times[0] < t - this.seconds) {
      times.shift()
      for (const f of fields) this.values[f].shift()
    }
  }
}

function plot({title, series}) {
  const holder = h('div', {class: 'plot', 'aria-hidden': 'true'})
  const values = series.map(() => h('b'))
  const legend = h('ul', {class: 'legend'}, ...series.map((one, i) => h('li', {}, key(one), one.label + ' ', values[i])))
  let chart = null

  function make(data) {
    const css = getComputedStyle(document.documentElement)
    const color = property => css.getPropertyValue(property).trim()
    const axis = {stroke: color('--soft'), grid: {stroke: color('--line'), width: 1}, ticks: {show: false}, font: '11px system-ui, sans-serif'}
    chart = new uPlot({
      width: holder.clientWidth || 300, height: 170, padding: [8, 8, 0, 0],
      legend: {show: false}, cursor: {y: false, points: {size: 6}, drag: {x: false, y: false}},
      scales: {y: {range: (u, min, max) => [0, Math.max(5, max * 1.08)]}},
      axes: [
        {...axis, grid: {show: false}, values: (u, ticks) => ticks.map(t => minute(t * 1000)), space: 60, size: 24},
        {...axis, size: 52, space: 34, values: (u, ticks) => ticks.map(count)},
      ],
      series: [{}, ...series.map(one => ({
        stroke: color(one.color), width: one.dash ? 1.25 : 1.75, dash: one.dash, points: {show: false},
        fill: one.fill ? color(one.color + '-fill') : undefined,
      }))],
      hooks: {setCursor: [label]},
    }, data, holder)
  }

  // label writes the values under the pointer, or the last.
  function label(u) {
    const i = u.cursor.idx ?? u.data[0].length - 1
    series.forEach((one, k) => text(values[k], count(Math.round(u.data[k + 1][i] ?? 0))))
  }

  return {
    element: h('figure', {'aria-label': title}, h('figcaption', {}, h('h4', {text: title}), legend), holder),
    draw(rows) {
      const data = [rows.times, ...series.map(one => rows.values[one.field])]
      if (chart) chart.setData(data)
      else make(data)
      label(chart)
    },
    resize() {
      if (chart && holder.clientWidth && holder.clientWidth !== chart.width) chart.setSize({width: holder.clientWidth, height: 170})
    },
    drop() {
      chart?.destroy()
      chart = null
    },
  }
}

function key({color, dash}) {
  const line = s('line', {x1: 0, y1: 5, x2: 18, y2: 5, 'stroke-dasharray': dash ? '5 3' : null})
  line.style.stroke = `var(${color})`
  return s('svg', {viewBox: '0 0 18 10', 'aria-hidden': 'true'}, line)
}

// historyTable is for those who cannot see charts, or want the figures.
function historyTable() {
  const body = h('tbody')
  const heads = ['Time', ...plots.flatMap(p => p.series.map(one => one.label))]
  const element = h('details', {}, h('summary', {text: 'The same as a table'}),
    h('div', {class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Figures over time'},
      h('table', {}, h('thead', {}, h('tr', {}, ...heads.map((t, i) => h('th', {scope: 'col', class: i ? 'number' : null, text: t})))), body)))
  let shownAt = 0
  return {
    element,
    update(rows, range) {
      const last = rows.times.at(-1)
      if (last - shownAt < range.step && body.firstChild) return
      shownAt = last
      const every = Math.max(1, Math.round(range.seconds / range.step / 30))
      const lines = []
      for (let i = rows.times.length - 1; i >= 0; i -= every) {
        const figures = fields.map(f => h('td', {class: 'number', text: rows.values[f][i] == null ? '–' : count(Math.round(rows.values[f][i]))}))
        lines.push(h('tr', {}, h('th', {scope: 'row', text: clock(rows.times[i] * 1000)}), ...figures))
      }
      body.replaceChildren(...lines)
    },
  }
}
