// Asks before something is changed, and shows what the node says to it.

import {h, say} from './dom.js'

// confirm shows what will change from what to what, and sends it when that is confirmed.
// changes are [what, before, after]; send returns a promise. It returns what was
// answered, null if it was not sent, and throws what the API refuses by field, since the
// form is the place to show that. Everything else that goes wrong is shown here.
export function confirm({title, changes, note, action, danger, send, fields = []}) {
  const button = h('button', {class: danger ? 'primary danger' : 'primary', text: action})
  const wrong = h('p', {class: 'wrong', role: 'alert', hidden: true})
  const cancel = h('button', {type: 'button', text: 'Leave it as it is', autofocus: true})
  const dialog = h('dialog', {'aria-labelledby': 'confirm-title'},
    h('form', {method: 'dialog'}, h('h2', {id: 'confirm-title', text: title}),
      h('table', {class: 'changes'},
        h('thead', {}, h('tr', {}, ...['Setting', 'Now', 'Will be'].map(t => h('th', {scope: 'col', text: t})))),
        h('tbody', {}, ...changes.map(([what, before, after]) => h('tr', {},
          h('th', {scope: 'row', text: what}), h('td', {class: 'before', text: before}), h('td', {class: 'after', text: after}))))),
      note ? h('p', {class: 'note', text: note}) : null, wrong,
      h('div', {class: 'actions'}, cancel, button)))
  const back = document.activeElement
  document.body.append(dialog)
  return new Promise((resolve, reject) => {
    const end = f => {
      dialog.close()
      dialog.remove()
      back?.focus?.()
      f()
    }
    cancel.addEventListener('click', () => end(() => resolve(null)))
    dialog.addEventListener('cancel', e => {
      e.preventDefault()
      end(() => resolve(null))
    })
    dialog.querySelector('form').addEventListener('submit', async e => {
      e.preventDefault()
      button.disabled = true
      try {
        const answer = await send()
        say(`Done: ${title}`)
        end(() => resolve(answer ?? {}))
      } catch (err) {
        if (err.errors?.some(one => fields.includes(one.field))) return end(() => reject(err))
        wrong.textContent = err.status === 403 ? 'This token may look, but change nothing: it needs the scope write.' : err.message
        wrong.hidden = false
        button.disabled = false
      }
    })
    dialog.showModal()
  })
}

// field returns an input with its label, a help text, and a place for what is wrong with
// it.
export function field(id, label, attributes, help) {
  const error = h('p', {class: 'wrong', id: id + '-error', hidden: true})
  const input = attributes.options
    ? h('select', {id, name: id}, ...attributes.options.map(([value, text]) => h('option', {value, text})))
    : h('input', {id, name: id, autocomplete: 'off', ...attributes})
  input.setAttribute('aria-describedby', `${id}-error` + (help ? ` ${id}-help` : ''))
  const element = h('div', {class: attributes.type === 'checkbox' ? 'field check' : 'field'}, h('label', {for: id, text: label}), input,
    help ? h('p', {class: 'help', id: id + '-help', text: help}) : null, error)
  return {
    element, input,
    refuse(message) {
      error.textContent = message
      error.hidden = !message
      if (message) input.setAttribute('aria-invalid', 'true')
      else input.removeAttribute('aria-invalid')
    },
  }
}

// showErrors writes errors of the API by their fields, and returns what belongs to none.
// The first field that is wrong gets the focus.
export function showErrors(fields, errors) {
  const rest = []
  let first = null
  for (const f of Object.values(fields)) f.refuse('')
  for (const {field, message} of errors) {
    if (!fields[field]) {
      rest.push(message)
      continue
    }
    fields[field].refuse(message)
    first ??= fields[field].input
  }
  first?.focus()
  return rest.join('. ')
}
