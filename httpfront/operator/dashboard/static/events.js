// The events of a room: what is planned, and a form to plan.

import {ask, Refused} from './api.js'
import {confirm, field, showErrors} from './confirm.js'
import {badge, h, show, text} from './dom.js'
import {count, day, local, moment} from './format.js'

const methods = [['', 'as the room'], ['fifo', 'fifo'], ['random', 'random'], ['passthrough', 'passthrough'], ['reject', 'reject']]

// Of each field of an event: its label, its input, how it is shown.
const shape = {
  name: ['Name', {type: 'text', maxlength: 100}, v => v],
  prequeue_start_time: ['Pre-queue starts', {type: 'datetime-local'}, v => v ? day(v) : 'no pre-queue'],
  event_start_time: ['Starts', {type: 'datetime-local'}, v => v ? day(v) : '–'],
  event_end_time: ['Ends', {type: 'datetime-local'}, v => v ? day(v) : '–'],
  shuffle_at_event_start: ['Shuffle the pre-queue at the start', {type: 'checkbox'}, v => v ? 'on' : 'off'],
  total_active_users: ['Total active users', {type: 'text', inputmode: 'numeric', placeholder: 'as the room'}, v => v ? count(v) : 'as the room'],
  new_users_per_minute: ['New users per minute', {type: 'text', inputmode: 'numeric', placeholder: 'as the room'}, v => v ? count(v) : 'as the room'],
  queueing_method: ['Queueing method', {options: methods}, v => v || 'as the room'],
  suspended: ['Suspended: this event does nothing', {type: 'checkbox'}, v => v ? 'on' : 'off'],
}
const times = ['prequeue_start_time', 'event_start_time', 'event_end_time']
const numbers = ['total_active_users', 'new_users_per_minute']

export function events(id) {
  const path = `rooms/${encodeURIComponent(id)}/events`
  const list = h('ul', {class: 'events'}), none = h('p', {class: 'empty', text: 'None is planned.'})
  const element = h('section', {class: 'panel', 'aria-labelledby': 'events-title'},
    h('header', {}, h('h3', {id: 'events-title', text: 'Events'}), h('button', {text: 'Plan an event …', on: {click: () => edit(path, null)}})), none, list)
  let shown = ''

  function update(all) {
    const now = JSON.stringify(all)
    if (now === shown) return
    shown = now
    show(none, all.length === 0)
    list.replaceChildren(...[...all].sort((a, b) => a.event_start_time.localeCompare(b.event_start_time)).map(one))
  }

  function one(e) {
    const state = e.suspended ? {label: 'Suspended', level: 'note', shape: 'pause'} : e.active ? {label: 'Under way', level: 'ok', shape: 'clock'}
      : e.prequeueing ? {label: 'Pre-queue', level: 'note', shape: 'clock'} : Date.parse(e.event_end_time) < Date.now() ? {label: 'Over', level: 'note', shape: 'ring'} : {label: 'Planned', level: 'note', shape: 'ring'}
    const overrides = [...numbers, 'queueing_method'].filter(f => e[f]).map(f => `${shape[f][0].toLowerCase()} ${shape[f][2](e[f])}`)
    return h('li', {}, h('header', {}, h('b', {text: e.name}), badge(state)),
      h('p', {class: 'help', text: `${day(e.event_start_time)} to ${day(e.event_end_time)}` + (e.prequeue_start_time ? `, pre-queue from ${day(e.prequeue_start_time)}${e.shuffle_at_event_start ? ', shuffled' : ''}` : '')}),
      overrides.length ? h('p', {class: 'help', text: overrides.join(', ')}) : null,
      h('div', {class: 'actions'},
        h('button', {'aria-label': `Edit ${e.name}`, text: 'Edit …', on: {click: () => edit(path, e)}}),
        h('button', {'aria-label': `Delete ${e.name}`, text: 'Delete …', on: {click: () => remove(path, e)}})))
  }

  return {element, update}
}

function remove(path, e) {
  return confirm({
    title: `Delete the event ${e.name}`, action: 'Delete the event', danger: true,
    changes: [[e.name, e.active ? 'under way' : e.prequeueing ? 'in its pre-queue' : 'planned', 'deleted']],
    note: e.active || e.prequeueing ? 'The settings of the room hold again at once.' : null,
    send: () => ask('DELETE', `${path}/${encodeURIComponent(e.id)}`),
  })
}

// edit shows the form for an event, a new one if there is none yet.
function edit(path, e) {
  const fields = {}
  for (const [name, [label, attributes]] of Object.entries(shape)) {
    fields[name] = field('event-' + name, label, attributes)
    if (attributes.type === 'checkbox') fields[name].input.checked = !!e?.[name]
    else fields[name].input.value = times.includes(name) ? local(e?.[name]) : e?.[name] ?? ''
  }
  const wrong = h('p', {class: 'wrong', role: 'alert', hidden: true})
  const cancel = h('button', {type: 'button', text: 'Cancel'})
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const dialog = h('dialog', {class: 'event', 'aria-labelledby': 'event-title'}, h('form', {novalidate: true},
    h('h2', {id: 'event-title', text: e ? `Edit ${e.name}` : 'Plan an event'}),
    h('p', {class: 'help', text: `Times are those of this machine (${zone}). What is left empty stays as the room has it.`}),
    h('div', {class: 'grid'}, ...Object.values(fields).map(f => f.element)), wrong,
    h('div', {class: 'actions'}, cancel, h('button', {class: 'primary', text: e ? 'Change the event …' : 'Plan the event …'}))))
  const back = document.activeElement
  const close = () => {
    dialog.remove()
    back?.focus?.()
  }
  cancel.addEventListener('click', close)
  dialog.addEventListener('cancel', close)
  dialog.querySelector('form').addEventListener('submit', async submitted => {
    submitted.preventDefault()
    const after = read(fields), before = e ?? {}
    const changed = Object.keys(shape).filter(name => !same(name, before[name], after[name]))
    if (changed.length === 0) return close()
    const body = Object.fromEntries(changed.map(name => [name, after[name]]))
    try {
      const done = await confirm({
        title: e ? `Change the event ${e.name}` : `Plan the event ${after.name}`, action: e ? 'Change the event' : 'Plan the event',
        fields: Object.keys(shape), changes: changed.map(name => [shape[name][0], e ? shape[name][2](before[name]) : '–', shape[name][2](after[name])]),
        send: () => e ? ask('PATCH', `${path}/${encodeURIComponent(e.id)}`, body) : ask('POST', path, body),
      })
      if (done) close()
    } catch (err) {
      if (!(err instanceof Refused)) throw err
      text(wrong, showErrors(fields, err.errors))
      show(wrong, wrong.textContent !== '')
    }
  })
  document.body.append(dialog)
  dialog.showModal()
}

function read(fields) {
  const event = {}
  for (const [name, {input}] of Object.entries(fields)) {
    const value = input.value.trim(), digits = value.replaceAll(',', '')
    if (input.type === 'checkbox') event[name] = input.checked
    else if (times.includes(name)) event[name] = moment(value)
    else if (numbers.includes(name)) event[name] = value === '' ? null : isFinite(digits) ? Number(digits) : value
    else event[name] = value || (name === 'name' ? '' : null)
  }
  return event
}

// same reports whether a field is as before; seconds are not asked for.
function same(name, before, after) {
  if (times.includes(name)) return local(before) === local(after)
  return (before || null) === (after || null)
}
