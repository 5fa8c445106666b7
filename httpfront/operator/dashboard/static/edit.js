// The settings of a room that are changed at night: its limits, and whether it lets in.

import {ask} from './api.js'
import {confirm, field, showErrors} from './confirm.js'
import {attr, h, show, text} from './dom.js'
import {count, plural} from './format.js'

const limits = {
  total_active_users: ['Total active users', 'How many may be on the site at a time.'],
  new_users_per_minute: ['New users per minute', 'How many are let in within any minute.'],
}
const yes = value => value ? 'on' : 'off'

// settings returns the form. What is written in it is the room's own, even while an event
// overrides it.
export function settings(id) {
  const path = `rooms/${encodeURIComponent(id)}`
  let room = null, own = null // as it is, and as it is set
  const fields = {}
  for (const [name, [label, help]] of Object.entries(limits)) {
    fields[name] = field(name, label, {type: 'text', inputmode: 'numeric'}, help)
    fields[name].input.addEventListener('input', () => { fields[name].refuse(''); settle() })
  }
  const save = h('button', {class: 'primary', text: 'Change limits …', disabled: true})
  const reset = h('button', {type: 'button', text: 'Undo', hidden: true, on: {click: undo}})
  const wrong = h('p', {class: 'wrong', role: 'alert', hidden: true})
  const event = h('p', {class: 'note', hidden: true})
  const form = h('form', {novalidate: true, on: {submit: changeLimits}},
    ...Object.values(fields).map(f => f.element), wrong, h('div', {class: 'actions'}, reset, save))
  const holds = ['queue_all', 'suspended'].map(name => hold(name, path))
  const element = h('section', {class: 'panel settings', 'aria-labelledby': 'settings-title'},
    h('h3', {id: 'settings-title', text: 'Settings'}), event, form,
    h('ul', {class: 'holds'}, ...holds.map(one => one.element)))

  // wanted returns what is written as a number, and as it is if it is none: what is
  // allowed is up to the node.
  function wanted(name) {
    const value = fields[name].input.value.trim().replaceAll(',', '')
    return value !== '' && isFinite(value) ? Number(value) : value
  }
  const edited = () => Object.keys(limits).filter(name => own && String(wanted(name)) !== String(own[name]))

  function settle() {
    const any = edited().length > 0
    save.disabled = !any
    show(reset, any)
  }

  function undo() {
    for (const name in limits) {
      fields[name].input.value = own[name]
      fields[name].refuse('')
    }
    show(wrong, false)
    settle()
  }

  async function changeLimits(e) {
    e.preventDefault()
    const names = edited()
    if (names.length === 0) return
    const body = Object.fromEntries(names.map(name => [name, wanted(name)]))
    const shown = v => typeof v === 'number' ? count(v) : `“${v}”`
    try {
      const done = await confirm({
        title: `Change limits of ${room.name}`, action: 'Change limits', fields: Object.keys(limits),
        changes: names.map(name => [limits[name][0], count(own[name]), shown(body[name])]),
        note: consequence(room, body), danger: names.some(name => body[name] < own[name]),
        send: () => ask('PATCH', path, body),
      })
      if (!done) return
      text(wrong, '')
      show(wrong, false)
    } catch (err) {
      const rest = showErrors(fields, err.errors)
      text(wrong, rest)
      show(wrong, rest !== '')
    }
  }

  // update leaves what somebody is writing as it is.
  function update(r, set) {
    room = r
    own = set
    for (const name in limits) {
      const {input} = fields[name]
      if (input.dataset.was !== undefined && input.value !== input.dataset.was && String(wanted(name)) !== String(own[name])) continue
      if (input.value !== String(own[name])) input.value = own[name]
      input.dataset.was = input.value
    }
    settle()
    show(event, !!r.event?.active)
    if (r.event?.active) text(event, `${r.event.name} is under way and overrides these: ${count(r.total_active_users)} active, ${count(r.new_users_per_minute)} per minute.`)
    for (const one of holds) one.update(r)
  }

  return {element, update}
}

function consequence(room, {total_active_users: total}) {
  if (typeof total === 'number' && total < room.active) {
    return `${plural(room.active, 'visitor is', 'visitors are')} active: nobody new gets in until ${count(room.active - total)} of them have left. Nobody is thrown out.`
  }
  return 'It holds at all nodes within two seconds.'
}

// Switches: what each says while it is off and on, and what turning it does.
const switches = {
  queue_all: {
    label: 'Queue all', off: 'Visitors are let in.', on: 'Nobody new is let in.', start: 'Hold everybody', stop: 'Let people in again',
    starting: r => `${plural(r.active, 'visitor')} on the site can go on. All others wait until this is taken back.`,
    stopping: r => `${plural(r.waiting, 'visitor waits', 'visitors wait')}; they are let in by the limits.`,
  },
  suspended: {
    label: 'Suspended', off: 'The room is in front of the site.', on: 'Everybody goes straight to the site.', start: 'Suspend', stop: 'Put the room back',
    starting: r => `There is no limit then. ${plural(r.waiting, 'visitor who waits goes', 'visitors who wait go')} to the site at once.`,
    stopping: () => 'Whoever comes is counted and limited again.',
  },
}

function hold(name, path) {
  const what = switches[name], now = h('p', {class: 'help'})
  let room = null
  const button = h('button', {on: {click() {
    const to = !room[name], action = to ? what.start : what.stop
    confirm({
      title: `${action}: ${room.name}`, action, danger: to, changes: [[what.label, yes(room[name]), yes(to)]],
      note: (to ? what.starting : what.stopping)(room), send: () => ask('PATCH', path, {[name]: to}),
    })
  }}})
  return {
    element: h('li', {}, h('div', {}, h('b', {text: what.label}), now), button),
    update(r) {
      room = r
      text(now, r[name] ? what.on : what.off)
      text(button, (r[name] ? what.stop : what.start) + ' …')
      attr(button, 'data-on', r[name] ? 'true' : null)
    },
  }
}
