// Tables that change every second. All rows are there, so that they can be searched in
// and read out, but only those in sight are drawn at once; the others follow within
// seconds. Rows do not change places under somebody's pointer or focus.

import {attr, h, order, say, text} from './dom.js'
import {count} from './format.js'

const resort = 5000 // ms between two orders by figures that change
const atATime = 10 // rows out of sight that are drawn between two frames
const firstRows = 250 // shown until more are asked for

export class Table {
  // columns are {title, class, value(item), up, cell()}: value is what is sorted by,
  // none if it cannot be; up is whether small ones come first; cell returns {element,
  // update(item)}. key(item) names an item; sorted is the index of a column.
  constructor({name, label, columns, key, sorted, empty}) {
    Object.assign(this, {columns, key, sorted, up: columns[sorted].up})
    this.rows = new Map()
    this.items = []
    this.most = firstRows
    this.sortedAt = -Infinity
    this.heads = columns.map((column, i) => this.head(column, i))
    this.body = h('div', {role: 'rowgroup', class: 'body'})
    this.grid = h('div', {role: 'table', 'aria-label': label, class: 'table ' + name},
      h('div', {role: 'rowgroup', class: 'heads'}, h('div', {role: 'row', class: 'row head'}, ...this.heads)), this.body)
    this.more = h('button', {class: 'more', hidden: true, on: {click: () => this.showMore()}})
    this.none = h('p', {class: 'empty', text: empty, hidden: true})
    this.element = h('div', {class: 'holder'}, this.grid, this.none, this.more)
    this.seen = new IntersectionObserver(entries => this.look(entries), {rootMargin: '100px'})
    this.timer = null // of what draws the rows out of sight
    this.idle = 0
  }

  head(column, i) {
    const props = {role: 'columnheader', class: column.class}
    if (!column.value) return h('span', props, h('span', {text: column.title}))
    return h('span', {...props, 'aria-sort': i === this.sorted ? (this.up ? 'ascending' : 'descending') : 'none'},
      h('button', {text: column.title, on: {click: () => this.sortBy(i)}}))
  }

  sortBy(i) {
    if (i === this.sorted) this.up = !this.up
    else this.up = !!this.columns[i].up
    this.sorted = i
    this.heads.forEach((head, n) => {
      if (this.columns[n].value) attr(head, 'aria-sort', n !== i ? 'none' : this.up ? 'ascending' : 'descending')
    })
    say(`Sorted by ${this.columns[i].title}, ${this.up ? 'smallest' : 'largest'} first`)
    this.arrange()
  }

  showMore() {
    this.most += firstRows
    this.arrange()
  }

  // update shows items. again is whether they are others, and not only changed.
  update(items, again) {
    this.items = items
    const held = this.body.matches(':hover') || this.body.contains(document.activeElement)
    const known = items.filter(item => this.rows.has(this.key(item)))
    const other = again || known.length < this.rows.size || known.length < Math.min(items.length, this.most)
    if (other || !held && performance.now() - this.sortedAt > resort) return this.arrange()
    for (const item of known) {
      const row = this.rows.get(this.key(item))
      row.item = item // another object after a new snapshot
      this.draw(row)
    }
    this.later()
  }

  // arrange puts the rows in order, and draws.
  arrange() {
    this.sortedAt = performance.now()
    const {value} = this.columns[this.sorted], sign = this.up ? 1 : -1
    const sorted = this.items.map(item => [value(item), this.key(item), item])
    sorted.sort((a, b) => sign * compare(a[0], b[0]) || compare(a[1], b[1]))
    const kept = new Map()
    for (const [, key, item] of sorted.slice(0, this.most)) kept.set(key, this.row(key, item))
    for (const [key, row] of this.rows) if (!kept.has(key)) this.seen.unobserve(row.element)
    this.rows = kept
    order(this.body, [...kept.values()].map(row => row.element))
    attr(this.grid, 'aria-rowcount', sorted.length + 1)
    const left = sorted.length - kept.size
    this.more.hidden = left <= 0
    if (left > 0) text(this.more, `Show ${count(Math.min(left, firstRows))} of ${count(left)} more`)
    this.none.hidden = sorted.length > 0
    this.grid.hidden = sorted.length === 0
    for (const row of kept.values()) this.draw(row)
    this.later()
  }

  row(key, item) {
    const old = this.rows.get(key)
    if (old) {
      old.item = item
      return old
    }
    const cells = this.columns.map(column => column.cell())
    cells.forEach((cell, i) => {
      attr(cell.element, 'role', 'cell')
      if (this.columns[i].class) cell.element.classList.add(...this.columns[i].class.split(' '))
      cell.element.dataset.title = this.columns[i].title
    })
    const row = {item, cells, near: true, stale: true, element: h('div', {role: 'row', class: 'row'}, ...cells.map(cell => cell.element))}
    row.element.row = row
    for (const cell of cells) cell.update(item)
    this.seen.observe(row.element)
    return row
  }

  draw(row) {
    row.stale = !row.near
    if (row.near) for (const cell of row.cells) cell.update(row.item)
  }

  look(entries) {
    for (const {target: {row}, isIntersecting} of entries) {
      row.near = isIntersecting
      if (row.near && row.stale) this.draw(row)
    }
  }

  // later draws the rows out of sight, a few at a time when the browser has nothing else
  // to do.
  later() {
    this.timer ??= setTimeout(() => { this.idle = requestIdleCallback(() => this.catchUp()) }, resort)
  }

  catchUp() {
    let left = atATime
    for (const row of this.rows.values()) {
      if (!row.stale) continue
      if (left-- === 0) {
        this.idle = requestIdleCallback(() => this.catchUp())
        return
      }
      row.stale = false
      for (const cell of row.cells) cell.update(row.item)
    }
    this.timer = null
  }

  close() {
    this.seen.disconnect()
    clearTimeout(this.timer)
    cancelIdleCallback(this.idle)
  }
}

function compare(a, b) {
  if (typeof a === 'string') return a.localeCompare(b, 'en', {numeric: true})
  return a < b ? -1 : a > b ? 1 : 0
}

// textCell returns a cell with the text that write makes of an item.
export function textCell(write) {
  return () => {
    const element = h('span')
    return {element, update: item => text(element, write(item))}
  }
}
