// Asks for the token when the node wants one.

import {token} from './api.js'
import {h} from './dom.js'

// signIn shows the form, and calls done with a token kept.
export function signIn(done) {
  if (document.querySelector('dialog.signin')) return
  const before = token.get() !== ''
  token.forget()
  const input = h('input', {
    type: 'password', id: 'token', name: 'token', required: true, autocomplete: 'off', spellcheck: 'false',
    'aria-describedby': 'token-help', 'aria-invalid': before ? 'true' : null,
  })
  const dialog = h('dialog', {class: 'signin', 'aria-labelledby': 'signin-title'},
    h('form', {method: 'dialog'},
      h('h2', {id: 'signin-title', text: 'A token, please'}),
      before ? h('p', {class: 'wrong', role: 'alert', text: 'The node does not take this token, or no more.'}) : null,
      h('label', {for: 'token', text: 'Admin token'}), input,
      h('p', {class: 'help', id: 'token-help', text: 'One with the scope read shows everything; to change something it needs the scope write. It is kept until this tab is closed.'}),
      h('div', {class: 'actions'}, h('button', {class: 'primary', text: 'Show the dashboard'}))))
  dialog.addEventListener('cancel', e => e.preventDefault()) // there is nothing behind it
  dialog.querySelector('form').addEventListener('submit', () => {
    token.set(input.value.trim())
    dialog.remove()
    done()
  })
  document.body.append(dialog)
  dialog.showModal()
}
