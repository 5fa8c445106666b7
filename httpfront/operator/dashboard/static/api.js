// How the page talks with the node. The token goes with every request, in its head, and
// is kept for as long as the tab is open.

const base = new URL('../api/v1/', document.baseURI)
const kept = 'ropeline-token'

export const token = {
  get: () => sessionStorage.getItem(kept) ?? '',
  set: value => sessionStorage.setItem(kept, value),
  forget: () => sessionStorage.removeItem(kept),
}

function head() {
  return token.get() ? {Authorization: 'Bearer ' + token.get()} : {}
}

// Refused is an answer that says no. errors has {field, value, allowed, message}; only
// message is always there.
export class Refused extends Error {
  constructor(status, errors) {
    super(errors.map(e => e.message).join('. '))
    this.status = status
    this.errors = errors
  }
}

async function refusal(response) {
  const answer = await response.json().catch(() => null)
  const errors = answer?.errors?.length ? answer.errors : [{message: `The node answered ${response.status}`}]
  return new Refused(response.status, errors)
}

// ask sends a request and returns what is answered. It throws Refused, or another error
// where no answer came.
export async function ask(method, path, body) {
  const request = {method, headers: head(), cache: 'no-store'}
  if (body !== undefined) {
    request.body = JSON.stringify(body)
    request.headers['Content-Type'] = 'application/json'
  }
  const response = await fetch(new URL(path, base), request)
  if (!response.ok) throw await refusal(response)
  return response.status === 204 ? null : response.json()
}

const silence = 15000 // a stream that says nothing for so long is broken
const slowest = 15000 // between two tries

// follow reads a stream of events until signal is aborted, and tries again when it
// breaks. It calls on(event, data) for every event, "beat" for a sign of life; "lost" is its
// own. It returns at an event after which there is nothing more to come.
export async function follow(path, signal, on) {
  for (let failures = 0; !signal.aborted; failures++) {
    const begun = Date.now()
    try {
      await read(path, signal, on)
    } catch (err) {
      if (signal.aborted) return
      if (err.status === 401 || err.status === 403) return on('revoked')
      if (err.status === 404) return on('gone')
      if (err === over) return
      on('lost', err)
    }
    if (Date.now() - begun > silence) failures = 0
    await pause(Math.min(slowest, 500 * 2 ** failures) * (1 + Math.random()) / 2, signal)
  }
}

const over = new Error('the stream is over')

async function read(path, signal, on) {
  const mine = new AbortController()
  const stop = () => mine.abort()
  signal.addEventListener('abort', stop, {once: true})
  let watch = setTimeout(stop, silence)
  try {
    const response = await fetch(new URL(path, base), {headers: head(), signal: mine.signal, cache: 'no-store'})
    if (!response.ok) throw await refusal(response)
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let rest = ''; ;) {
      const {done, value} = await reader.read()
      if (done) throw new Error('the node has closed the stream')
      clearTimeout(watch)
      watch = setTimeout(stop, silence)
      rest = events(rest + value, on)
    }
  } finally {
    clearTimeout(watch)
    signal.removeEventListener('abort', stop)
  }
}

// events calls on for every whole event in text, and returns what is left.
function events(text, on) {
  for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
    let event = '', data = ''
    for (const line of text.slice(0, end).split('\n')) {
      if (line.startsWith('event: ')) event = line.slice(7)
      else if (line.startsWith('data: ')) data += line.slice(6)
    }
    on(event || 'beat', data ? JSON.parse(data) : null)
    if (event === 'revoked' || event === 'gone') throw over
  }
  return text
}

function pause(ms, signal) {
  return new Promise(resolve => {
    const timer = setTimeout(done, ms)
    function done() {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
  })
}
